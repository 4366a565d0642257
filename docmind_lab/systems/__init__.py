"""Workloads: the systems that are put under a deadline.

system_catalogue.py  the systems as users name them, and where each is
workload_by_name.py  the kind of a workload by its name
base             what systems have in common: their kind, questions, documents, model calls, nodes
docmind          the system that the lab was made for: a supervisor over five roles
research, staged, peers, hops   four more, each a package
own              a user's own graph, agent or program
"""
