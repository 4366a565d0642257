"""The measurement of one run.

run          measure: one run, observed to its horizon
derive       turn what was observed into rows
simulation   a run in virtual time
"""
