"""The manifest of a study: what determined its runs, and on what they ran."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from typing import Any

from docmind_lab.records import SCHEMA_VERSION
from docmind_lab.settings import Settings

PACKAGES = (
    "docmind_lab",
    "langchain",
    "langchain-openai",
    "langgraph",
    "openai",
    "qdrant-client",
    "httpx",
    "httpx2",
    "pandas",
)


def manifest_of(
    design: Mapping[str, Any],
    settings: Settings,
    *,
    study_id: str,
    complete: bool,
    systems: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The manifest as JSON. It holds no API key, no text of a user, and no path of the machine.

    design: what determines the runs. complete: False when the study was interrupted. systems: level of `workload` →
    what it is called, and what its runs are asked.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "study_id": study_id,
        "complete": complete,
        "created_utc": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "design": dict(design),
        "systems": {name: dict(said) for name, said in (systems or {}).items()},
        "settings": settings.recorded(),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in PACKAGES},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
