"""Data files that ship with the package. `data/README.md` says how the latency profiles were derived."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any


def data_in(file: str) -> Any:
    """Return what a file of this package holds in JSON."""
    return json.loads(importlib.resources.files(__name__).joinpath(file).read_text(encoding="utf-8"))
