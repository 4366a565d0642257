"""Data files that ship with the package: `latency_profiles.json`, derived as `data/README.md` describes."""
