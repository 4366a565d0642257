"""Retrieval: the index of a corpus in Qdrant, the search strategies, and router engines.

index.py         SearchIndex: a Qdrant collection with its encoders
strategies.py    hybrid, hierarchical and graph search, sync and async
tool.py          the retrieve_documents tool: its payload, its budget
injection.py     an injected router engine, asked first, within its share of the budget
"""
