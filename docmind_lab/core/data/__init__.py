"""Data files that ship with the package. `data/README.md` says how the latency profiles were derived."""
