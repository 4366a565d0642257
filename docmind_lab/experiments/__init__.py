"""Measured experiments: a single run, many runs side by side, and designed studies.

world_options what a system meets: the options of a comparison, a command line and a study file
advice       which alternative to take, and with which timeout: an examination and a sweep in one call
measurement  one run: observed to its horizon, its rows derived, in real or virtual time
batch        runs over worker processes
comparison   the alternatives side by side
sweeps       designed studies, kept in folders
recordings   live studies recorded and replayed
crash_test   what a deadline or a kill leaves behind, wherever it falls
lint         whether a graph keeps its deadline; testing asserts it in a test
pytest_plugin  tests in virtual time by a marker, and the assertions as fixtures
"""
