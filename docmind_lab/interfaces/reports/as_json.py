"""A report as strict JSON: its words, its tables with all digits, its manifest."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.interfaces.reports.model import Block, Facts, Figure, Prose, Report, Table


def as_json(report: Report) -> str:
    """All of it but the images. A number that is not there is null; one beyond all bounds is "inf" or "-inf"."""
    return json.dumps(_strict(_report(report)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _report(report: Report) -> dict[str, Any]:
    sections = [
        {"name": section.name, "heading": section.heading, "blocks": [_block(block) for block in section.blocks]}
        for section in report.sections
    ]
    head = {"title": report.title, "study_id": report.study_id, "complete": report.complete}
    return {**head, "sections": sections, "manifest": report.manifest}


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Prose):
        return {"kind": block.kind, "lines": list(block.lines)}
    if isinstance(block, Facts):
        return {"kind": "facts", "items": dict(block.items)}
    if isinstance(block, Figure):
        tables = [_table(table) for table in block.tables]
        return {"kind": "figure", "title": block.title, "alt": block.alt, "tables": tables}
    return _table(block)


def _table(table: Table) -> dict[str, Any]:
    plain = table.frame.astype(object)
    return {"kind": "table", "caption": table.caption, "rows": plain.to_dict("records")}


def _strict(value: Any) -> Any:
    """The value as JSON knows it."""
    if isinstance(value, Mapping):
        return {str(name): _strict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, np.generic):
        return _strict(value.item())
    if value is pd.NA:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value
