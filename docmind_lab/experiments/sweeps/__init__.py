"""Designed experiments: many conditions, computed in cells, kept in folders, and read as tables."""
