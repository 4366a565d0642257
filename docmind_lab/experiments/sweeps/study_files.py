"""Read TOML files that describe a study, and explain errors in them."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from docmind_lab.core.errors import ConfigurationError


def read_study_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of the file. Raises: ConfigurationError naming the file and what is wrong with it."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"study file {path} cannot be read ({error.strerror}); check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"study file {path} is not TOML: {error}") from error


def explain(error: ValidationError, model: type[BaseModel], prefix: str = "") -> str:
    """Explain each field that does not fit the model, in one line each. prefix: the table that holds the fields."""
    lines = []
    for problem in error.errors():
        names, inner = _field(problem["loc"], model)
        field = ".".join(([prefix] if prefix else []) + names)
        if problem["type"] == "extra_forbidden":
            lines.append(f"{field}: there is no such field; there are {', '.join(sorted(inner.model_fields))}")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{field}: {message}, not {problem['input']!r}" if names else f"{field}: {message}")
    return "; ".join(dict.fromkeys(lines))


def _field(location: tuple[int | str, ...], model: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """Return the names that lead to a field, and the model it belongs to, without kinds and indices of levels."""
    names: list[str] = []
    for part in map(str, location):
        names.append(part)
        known = model.model_fields.get(part)
        if known is None or not (isinstance(known.annotation, type) and issubclass(known.annotation, BaseModel)):
            break
        model = known.annotation
    return names, model
