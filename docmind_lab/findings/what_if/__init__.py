"""What a deadline would have done to runs that were recorded as traces (`tables/traces`).

trace_formats    traces of a file or a folder, whatever tool wrote it
arrays           the tables as arrays, ordered by run
outcomes         what becomes of each run under a rule at each deadline, for all runs at once
shares_in_time   the share of runs in time, with intervals by session
answers          what a replay answers, as rows
what_if          the answer: how long, enforced how, and what would be left behind
trace_agreement  how far a replay agrees with runs that were really made
"""

from docmind_lab.findings.what_if.trace_agreement import agreement_with_stack
from docmind_lab.findings.what_if.what_if import WhatIf, what_if
from docmind_lab.tables.traces.trace_tables import Traces
from docmind_lab.tables.traces.traced_studies import traces_of_study

__all__ = ["Traces", "WhatIf", "agreement_with_stack", "traces_of_study", "what_if"]
