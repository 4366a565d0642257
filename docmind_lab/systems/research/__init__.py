"""Saturation-driven research under layered limits: the workload `research`, and functions that run a research.

tasks.py              tasks of a few hypotheses, with gold; ResearchLimits: one call, one source, the whole research
sources.py            collections that differ in pages, richness, noise and pace; a search, and its results
prompts.py            the prompts and messages of the model's four roles
research_calls.py     a model call, tried again within the budget, and the decision in its reply
exits.py              why work on a source ended, the event that records it, and the table `sources`
research_ledger.py    the queries asked and results kept
loop.py               one source: write, search, filter, record, check
research_graph.py     hypotheses in turn, sources side by side, the findings
research_workload.py  the workload: clients, sources, model and graph of a research under a deadline from outside
research_script.py    what the simulated model says in the four roles
"""

import docmind_lab.systems.research.research_script  # noqa: F401 - it adds what the model says in its roles
