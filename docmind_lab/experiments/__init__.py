"""Measured experiments: a single run, many runs side by side, designed studies, and studies under load.

system_options        what is put under a deadline: System; world: what it meets
flat_options the same as options of a command line and a study file
measurement  one run: observed to its horizon, its rows derived, in real or virtual time
batch        runs over worker processes
comparison   the alternatives side by side
sweeps       designed studies, kept in folders
load         queries that arrive whatever happens to those before
recordings   live studies recorded and replayed
crash_test   what a deadline or a kill leaves behind, wherever it falls
lint         whether a graph keeps its deadline; testing asserts it in a test
"""
