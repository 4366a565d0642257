"""Fits a latency profile to observed calls, with the evidence for each of its tables, and stores it in a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_text, write_or_refuse
from docmind_lab.statistics.latency.calls import ObservedCalls
from docmind_lab.statistics.latency.decompose import split_calls
from docmind_lab.statistics.latency.durations import DurationFit, QuantileTables, fit_durations
from docmind_lab.statistics.latency.profile import LatencyProfile, QuantileTable
from docmind_lab.statistics.latency.sessions import fit_correlation
from docmind_lab.statistics.latency.sources import Source, read_calls

_NO_SESSIONS: Final = (
    "No ten sessions of several calls are known, so whether calls of a session are slow together cannot be told: they "
    "count as independent; map a column to session to know."
)
_NO_TIME: Final = QuantileTable.constant(0.0)


@dataclass(frozen=True)
class FitOptions:
    """What the data cannot tell, and how a fit assumes it.

    name: of the profile, in tables and figures; None for that of the source. model, node: only its calls.
    hang_probability: share of model calls that never answer, in [0, 1); it is never guessed from timeouts, which may be
    slow calls. slots: model calls that the server works on at once. retrieval: the profile, or its name, that gives the
    time of a search where the source has none. tables: "auto" takes a family where it fits and observed quantiles where
    it does not; "fitted" and "empirical" insist.
    """

    name: str | None = None
    model: str | None = None
    node: str | None = None
    hang_probability: float = 0.0
    slots: int | None = None
    retrieval: str | LatencyProfile = "typical"
    tables: QuantileTables = "auto"

    def __post_init__(self) -> None:
        if not 0 <= self.hang_probability < 1:
            raise ConfigurationError(f"hang_probability must lie in [0, 1): got {self.hang_probability}")


def fit_profile(
    source: Source,
    columns: Mapping[str, str] | None = None,
    *,
    ok: Sequence[str] = (),
    options: FitOptions | None = None,
) -> LatencyProfile:
    """Fit a profile to a source's calls: `LatencyProfile.fit` with its options in one object.

    Raises: ConfigurationError naming the file, the column and the remedy.
    """
    options = options or FitOptions()
    calls = read_calls(source, columns, ok).of_node(options.node).of_model(options.model)
    return profile_of_calls(calls, options)


def fit_profiles(
    source: Source,
    each: Literal["model", "node"],
    columns: Mapping[str, str] | None = None,
    *,
    ok: Sequence[str] = (),
    options: FitOptions | None = None,
) -> dict[str, LatencyProfile]:
    """Fit a profile to the calls of each model, or of each node of a graph, by its name.

    Raises: ConfigurationError as `fit_profile` does, and where no row says its model or node.
    """
    options = options or FitOptions()
    calls = read_calls(source, columns, ok).of_node(options.node)
    levels = calls.levels(each)
    if not levels:
        raise ConfigurationError(f"{calls.source}: no row names its {each}; map a column to it, as in {each}=COLUMN")
    of_level = {level: calls.of_model(level) if each == "model" else calls.of_node(level) for level in levels}
    return {
        level: profile_of_calls(some, replace(options, name=f"{options.name}-{level}" if options.name else None))
        for level, some in of_level.items()
    }


def profile_of_calls(calls: ObservedCalls, options: FitOptions | None = None) -> LatencyProfile:
    """Fit a profile to observed calls. Raises: ConfigurationError as `fit_profile` does."""
    options = options or FitOptions()
    hangs = _hangs_in(calls, options.hang_probability)
    parts = split_calls(calls, hangs)
    phrases = [*calls.notes, *parts.assumptions]
    fits = {"first_token_s": fit_durations(parts.first_token, "first_token_s", options.tables, hangs)}
    if parts.inter_token is not None:
        # A call that hangs never sends its first token, so it is among the first tokens only. Where only whole
        # latencies are known, both parts are factors of one sample, and the hangs are in both.
        within = hangs if len(parts.inter_token.cut_s) else 0.0
        fits["inter_token_s"] = fit_durations(parts.inter_token, "inter_token_s", options.tables, within)
    if parts.retrieval is not None:
        fits["retrieval_s"] = fit_durations(parts.retrieval, "retrieval_s", options.tables)
        retrieval_s = fits["retrieval_s"].table
    else:
        other = options.retrieval
        other = LatencyProfile.named(other) if isinstance(other, str) else other
        retrieval_s = other.retrieval_s
        phrases.append(f"No search was observed: retrieval_s is that of the profile {other.name!r}.")
    sessions = fit_correlation(parts.slowness)
    phrases += [f"{name}: {fit.in_words()}" for name, fit in fits.items()]
    phrases.append(_NO_SESSIONS if sessions is None else sessions.in_words())
    if any(fit.cut for fit in fits.values()):
        phrases.append("Cut calls count as longer than they were when cut (right-censored).")
    share = options.hang_probability
    values = f"{share:g}, as given" if share else "0: timeouts do not tell hangs from slow calls"
    phrases.append(f"hang_probability is {values}.")
    if share and not hangs:
        phrases.append("Far fewer calls were cut than hang, so the hung ones are taken to be missing from the data.")
    return LatencyProfile(
        name=options.name or re.sub(r"\.(csv|jsonl?|ndjson|parquet)\b", "", calls.source.removeprefix("the ")),
        description=" ".join(phrases),
        source=f"Fitted to {len(calls.frame)} calls of {calls.source}",
        first_token_s=fits["first_token_s"].table,
        inter_token_s=fits["inter_token_s"].table if "inter_token_s" in fits else _NO_TIME,
        retrieval_s=retrieval_s,
        hang_probability=share,
        slots=options.slots,
        rank_correlation=parts.rank_correlation,
        correlation=0.0 if sessions is None else sessions.correlation,
        evidence=fits,
    )


def _hangs_in(calls: ObservedCalls, hang_probability: float) -> float:
    """Return the share of hung calls among the rows: the given share, or 0 if hung calls were never logged.

    Each hung call in the data was cut. Where not even half as many were cut, only calls that ended were logged.
    """
    llm = calls.of_kind("llm")
    cut = int((~llm["complete"].astype("bool")).sum())
    return hang_probability if cut >= 0.5 * hang_probability * len(llm) else 0.0


SCHEMA_VERSION: Final = 1


def save_profile(profile: LatencyProfile, path: str | os.PathLike[str]) -> Path:
    """Write a profile to a JSON file and return its path; `LatencyProfile.named(path)` reads it.

    Raises: ConfigurationError unless it ends in .json, or when it cannot be written.
    """
    target = Path(path)
    if target.suffix != ".json":
        raise ConfigurationError(f"a profile's file must end in .json, so that --latencies knows it: got {target}")
    content: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "profile": profile.to_dict()}
    if profile.evidence is not None:
        content["evidence"] = {name: fit.to_dict() for name, fit in profile.evidence.items()}
    return write_or_refuse(target, as_text(json.dumps(content, indent=1, allow_nan=False) + "\n"))


def load_profile(path: str | os.PathLike[str]) -> LatencyProfile:
    """Read the profile from a file that `save_profile` wrote, or that holds `LatencyProfile.to_dict`'s result.

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
        evidence = {name: DurationFit.from_dict(fit) for name, fit in content.get("evidence", {}).items()}
        return replace(profile, evidence=evidence or None)
    except (ConfigurationError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"latency profile {path}: {error}; docmind-lab profile makes one") from error
