"""Turns the tables of a study into statistics, findings, figures and sentences. Nothing here runs an agent.

tables        runs, calls and events: their columns, and what each means
cell_store    cells of a study as files; study_folder is the folder they are in
study         the three tables of a study with its manifest
conditions    the conditions of runs, and the arms that are compared under them
statistics    intervals and tests
findings      choices, recommendations and scorecards from the runs
summary       a study in a table and sentences; titles is its title; run_timeline is one run as lines
plots         figures
latency       latency profiles, and how they are fitted to calls that were measured
agreement     how far two clocks agree
diff          two studies against each other
enforced_calls, watch  calls in production, and whether they behave as a study said
page          a finding as text, Markdown and HTML
text          numbers, names and tables as text
"""
