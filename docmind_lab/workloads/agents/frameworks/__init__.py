"""Adapters, one for each framework: `adapt(found, reference)` returns its object as an `Agent`.

Each says how the framework runs, and what its own timeout of a whole run is. An adapter is imported when an object of
its framework is there, so nothing here imports a framework by itself.
"""
