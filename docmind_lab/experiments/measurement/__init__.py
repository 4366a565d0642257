"""The measurement of one run.

measured_run  measure: one run, observed to its horizon
derive        turn what was observed into rows; from_events: the columns that follow from events
simulation    a run in virtual time
"""
