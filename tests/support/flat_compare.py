"""`compare` with options by name, as the command line has them, for tables of tests."""

from __future__ import annotations

from typing import Any

import docmind_lab as dl
from docmind_lab.experiments.world_options import nouns_of


def compare_by(**options: Any) -> dl.Study:
    """Return the study of a system and a world that options mean: `compare_by(system="hops", latencies="fast")`."""
    return dl.compare(**nouns_of(options))
