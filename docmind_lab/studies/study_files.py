"""TOML files that say what a study is."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from docmind_lab.errors import ConfigurationError


def read_study_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the file says. Raises: ConfigurationError naming the file and what is wrong with it."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"study file {path} cannot be read ({error.strerror}); check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"study file {path} is not TOML: {error}") from error
