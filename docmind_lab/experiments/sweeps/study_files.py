"""TOML files that say what a study is, and how to say what is wrong with one."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from docmind_lab.core.errors import ConfigurationError


def read_study_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the file says. Raises: ConfigurationError naming the file and what is wrong with it."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"study file {path} cannot be read ({error.strerror}); check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"study file {path} is not TOML: {error}") from error


def explain(error: ValidationError, model: type[BaseModel], prefix: str = "") -> str:
    """Each field of the model that does not fit, and what does, in one line. prefix: the table that it stands in."""
    lines = []
    for problem in error.errors():
        names, inner = _field(problem["loc"], model)
        field = ".".join(([prefix] if prefix else []) + names)
        if problem["type"] == "extra_forbidden":
            lines.append(f"{field}: there is no such field; there are {', '.join(sorted(inner.model_fields))}")
        else:
            said = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{field}: {said}, not {problem['input']!r}" if names else f"{field}: {said}")
    return "; ".join(dict.fromkeys(lines))


def _field(location: tuple[int | str, ...], model: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """The names of a field, and the model that it is of; the kinds and numbers of its levels are left out."""
    names: list[str] = []
    for part in map(str, location):
        names.append(part)
        known = model.model_fields.get(part)
        if known is None or not (isinstance(known.annotation, type) and issubclass(known.annotation, BaseModel)):
            break
        model = known.annotation
    return names, model
