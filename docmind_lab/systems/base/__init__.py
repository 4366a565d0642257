"""What the systems under a deadline have in common. It knows none of them.

workload_kind.py   WorkloadKind: what a system is, and the function that builds it
retries.py         who tries a failed call again, as the column `retries` says it
workloads.py       base classes of workloads
state.py           the state of a graph: its deadline, its documents, how values are merged
steps_node.py      a node whose logic is written once for sync and async runs
node_modes.py      model calls and tools that are async, sync, or block the event loop
observer.py        callbacks and a checkpointer that record what a graph does
model_calls.py     middleware around every model call: recording, budgets and the deadline
model_client.py    a model that a plain node calls, on the same path
timed_calls.py     one call under time policies, a second request among them
bounded_calls.py   calls that are no model calls, recorded and cut at the deadline
questions.py       questions with gold topics and facts; answer_scores.py how answers are scored
results.py         documents that a search returns, without paths and blobs
corpus.py          passages, and where a text is cut into them
encoders.py        BM25 and LSA, fitted on passages
documents          a user's documents as a library; the handbook
"""
