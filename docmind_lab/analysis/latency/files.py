"""A profile in a file, with the evidence it rests on: `docmind-lab profile` writes it, every --profile reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from docmind_lab.analysis.latency.fitting import LatencyEvidence
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.core.errors import ConfigurationError

SCHEMA_VERSION: Final = 1


def save_profile(profile: LatencyProfile, path: str | os.PathLike[str]) -> Path:
    """The path of the JSON file just written, whole or not at all; `LatencyProfile.named(path)` reads it.

    Raises: ConfigurationError unless it ends in .json, or when it cannot be written.
    """
    target = Path(path)
    if target.suffix != ".json":
        raise ConfigurationError(f"a profile's file must end in .json, so that --profile knows it: got {target}")
    content: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "profile": profile.to_dict()}
    if profile.evidence is not None:
        content["evidence"] = profile.evidence.to_dict()
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ConfigurationError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def load_profile(path: str | os.PathLike[str]) -> LatencyProfile:
    """The profile of a file that `save_profile` wrote, or of one with what `LatencyProfile.to_dict` gives.

    Raises: ConfigurationError naming the file and what does not fit.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"latency profile {path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigurationError(f"latency profile {path} is not JSON: {error}; make it again") from error
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"latency profile {path} is not a JSON object; docmind-lab profile makes one")
    version = content.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise ConfigurationError(f"latency profile {path} has schema_version {version}, known is {SCHEMA_VERSION}")
    try:
        profile = LatencyProfile.from_dict(content.get("profile", content))
        evidence = content.get("evidence")
        return profile if evidence is None else replace(profile, evidence=LatencyEvidence.from_dict(evidence))
    except (ConfigurationError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"latency profile {path}: {error}; docmind-lab profile makes one") from error
