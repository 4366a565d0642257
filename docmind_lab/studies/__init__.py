"""Studies under their public names."""
