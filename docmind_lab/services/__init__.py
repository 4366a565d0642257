"""Simulated services as plans: what a model server or a vector store sends, and when."""
