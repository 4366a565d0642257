"""The measurement of one run.

run          the order of a run, and the run observed to its horizon
derive       how the columns of its rows follow from what was observed
simulation   a run in virtual time
"""
