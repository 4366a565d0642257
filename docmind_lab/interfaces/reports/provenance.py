"""How a study was made: its manifest, as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from docmind_lab.analysis.export import flattened
from docmind_lab.analysis.study import Study
from docmind_lab.interfaces.reports.model import Block, Facts, Section, Table

_TABLES = {"design": "The design", "settings": "The settings", "versions": "Versions", "machine": "The machine"}
# Beyond this a value (the quantiles of a profile) is for a machine: the manifest and the JSON report have it whole.
_LONGEST_VALUE = 160


def making(study: Study) -> Section:
    """The last section: what determined the runs, and on what they ran."""
    manifest = study.manifest
    facts = {
        name.replace("_", " "): str(manifest[name]) for name in ("created_utc", "schema_version") if name in manifest
    }
    blocks: list[Block] = [Facts(facts)] if facts else []
    for name, caption in _TABLES.items():
        values = manifest.get(name)
        if isinstance(values, Mapping) and values:
            blocks.append(_table(caption, values))
    return Section("making", "How it was made", tuple(blocks))


def _table(caption: str, values: Mapping[str, Any]) -> Table:
    flat = flattened(values)
    frame = pd.DataFrame({"field": list(flat), "value": list(flat.values())})
    shown = pd.DataFrame({"field": list(flat), "value": [_cell(value) for value in flat.values()]}, dtype="str")
    return Table(caption, shown, frame, left=frozenset({"value"}))


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} … ({len(text):,} characters)"
