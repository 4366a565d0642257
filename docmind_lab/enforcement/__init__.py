"""The measured alternatives in production: a user's own graph, clients and services under a deadline.

scope.py     `deadline`: any block of code under a deadline
"""
