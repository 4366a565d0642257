"""DocMind's retrieval under its public names."""

from docmind_lab.docmind import retrieval as home
from docmind_lab.docmind.retrieval import *  # noqa: F403 - all of its public names, which stand there

__all__ = home.__all__
