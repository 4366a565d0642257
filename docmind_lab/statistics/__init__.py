"""Statistics of a study: pure functions, arrays and frames in, frames and intervals out.

    interval.py            an estimate with its interval; a difference with its interval, p value and test
    shares.py              shares of runs: Wilson; paired and unpaired differences
    sample_size.py         quantiles behind a gate: a number with enough runs, else how many are missing
    tolerance.py           limits that few calls to come will be beyond, several of them together
    answer_times.py        when each run was answered, or why that is not known
    completion_curves.py   the share answered by each instant, with bands
    means.py               intervals of means: bootstrap, few values that differ, known bounds
    differences.py         two arms, seed by seed or independent; p values of many comparisons

Runs that timed out, failed or never ended are in every number; none is over answered runs only.
"""
