"""docmind_lab."""
