"""The supervisor graph of DocMind under its public names."""

from docmind_lab.systems.docmind import graphs as home
from docmind_lab.systems.docmind.graphs import *  # noqa: F403 - all of its public names, which stand there

__all__ = home.__all__
