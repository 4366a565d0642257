"""The project's own costs, as ratios within one run: `make bench`."""
