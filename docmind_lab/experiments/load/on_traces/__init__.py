"""Load studies on traces: recorded runs arrive as queries at one provider, a million of them in minutes.

    from docmind_lab.experiments.load import load_on_traces
    study = load_on_traces(traces, [0.3, 0.5], alternatives="A,B,C", slots=4, queries=10_000)

shapes.py          a recorded run as calls that wait for each other
traced_server.py   the model server: slots, queue and its policies, and calls whose clients have left
traced_crowd.py    queries side by side, as events in order of time
load_on_traces.py  load_on_traces, and the computing of one crowd
"""
