"""Runs as graphs of calls, and what a deadline would have done to them.

model       the tables of traces: runs, spans, generation; files of traces
studies     traces of the lab's own studies
importers/  readers of what other tools wrote
rules       what each alternative does at the deadline
arrays      the tables as arrays, ordered by run
outcomes    what becomes of each run under a rule at each deadline, for all runs at once
shares      the share of runs in time, with intervals by session
answers     what a replay answers, as rows
what_if     the answer: how long, enforced how, and what would be left behind
agreement   how far a replay agrees with runs that were really made
"""

from docmind_lab.analysis.traces.agreement import agreement_with_stack
from docmind_lab.analysis.traces.model import Traces
from docmind_lab.analysis.traces.studies import traces_of_study
from docmind_lab.analysis.traces.what_if import WhatIf, what_if

__all__ = ["Traces", "WhatIf", "agreement_with_stack", "traces_of_study", "what_if"]
