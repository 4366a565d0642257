"""DocMind, the system that the lab was made for: a supervisor over five roles that answers questions from documents.

retrieval            the index, strategies, router engines, the retrieve_documents tool
graphs               the supervisor graph and its agents
router               a router engine over the search strategies
docmind_system       clients, index, model and graph as one, and as a workload
coordinator          one question in, one response out, within its budget
"""
