"""Scripts beside the package, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load_script(path: Path, monkeypatch: pytest.MonkeyPatch | None = None, name: str = "") -> ModuleType:
    """The module of a file, under its own name or `name`. monkeypatch: has what stands beside it importable, too."""
    if monkeypatch is not None:
        monkeypatch.syspath_prepend(path.parent)
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its own module up there while it is being made.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
