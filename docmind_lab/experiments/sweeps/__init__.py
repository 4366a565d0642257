"""Designed experiments: many conditions, computed in cells, stored in folders, and read as tables."""
