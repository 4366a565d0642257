"""A staged orchestrator that turns text into a graph: an agent with tools, and a ladder of fallbacks below it.

    primary → suggested → generated → forced → finalize

parsing.py                        parse tool calls from a model's reply, whole or damaged
stage_calls.py                    the tools, the write that each call makes, the order of calls
graph_store.py                    the store, and what confirms a write
staged_ledger.py                  the record of a run's writes; the desk that runs calls
staged_state.py                   the state of its graph, its options
primary.py, rungs.py              its rungs: the agent, and those below it, which ask no model
staged_events.py                  events, and the table `stages` that is made of them
staged_workload.py                the workload `staged`: its inputs, its graph, its kind
staged_script.py                  what the simulated model says in the agent's role
"""

import docmind_lab.systems.staged.staged_script  # noqa: F401 - it adds what the model says in its role
