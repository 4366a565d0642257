"""Runs as graphs of calls: the tables of traces, and where they come from.

trace_tables    the tables of traces: runs, spans, generation; files of traces
traced_studies  traces of the lab's own studies
rules           what each alternative does at the deadline
importers/      readers of what other tools wrote
"""
