"""Which limits of calls notice a hang soonest, and still let healthy calls end.

    dog = watchdog(Study.load("my-study"), false_kills=0.01)
    dog                          # the limits, what they kill, and what these calls cannot say
    dog.limits                   # dl.Limits(first_token_s=…, idle_s=…, total_s=…)
    dog.export("langgraph")      # code to paste, and what it cannot express

A healthy call is one that ends by itself. The promise is of fresh calls: of as many as these, of the same system, the
limits together kill at most `false_kills`, in 95 % of repeats; `statistics.tolerance` says by what reasoning. Calls of
one seed, or of one session, are not independent: that is the unit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.limits import Limits
from docmind_lab.core.text import count_of, join_names, percent
from docmind_lab.findings.finding import Code, Finding, MakesFinding
from docmind_lab.findings.study import DESIGN, MANIFEST, Study
from docmind_lab.findings.what_if.trace_formats import import_traces
from docmind_lab.statistics.interval import Interval
from docmind_lab.statistics.tolerance import SURE, ToleranceSample, calls_needed
from docmind_lab.tables.frames import StudyTables
from docmind_lab.tables.traces.importers.recordings import is_recording
from docmind_lab.tables.traces.trace_tables import Traces

KINDS: Final[Mapping[str, str]] = {"total": "total", "first_token": "first token", "idle": "idle"}
"""The limits by name, with their words. The first is known of every call, and says how long a cut one lasted."""
_OF_HTTPX: Final = """\
# It has no total: a trickle, or a stream that is kept alive, goes on while a byte comes every {read:g} s.
# It bounds the first token and each silence alike; connect, write and pool too, of which nothing was measured."""
EXPORTS: Final[Mapping[str, str]] = {
    "langgraph": """\
from langgraph.types import TimeoutPolicy

policy = TimeoutPolicy(run_timeout={limits.total_s}, idle_timeout={silence})
# It bounds one attempt of an async node: it is right where that makes one call, which no client retries.
# idle_timeout bounds the first token and each silence alike, as the callbacks of the node see them: a model that is not
# streamed shows none.""",
    "httpx": """\
import httpx

timeout = httpx.Timeout({read})
"""
    + _OF_HTTPX,
    "openai": """\
import httpx
from openai import OpenAI

client = OpenAI(timeout=httpx.Timeout({read}), max_retries=1)
# A call that never answers takes 2 × {read:g} s, and the wait between. A healthy one that was killed is tried again.
"""
    + _OF_HTTPX,
}
"""Limits as other libraries take them: code to paste, which says what it cannot express."""
# An answer of which even the first token came in the last twentieth of its time was not streamed.
_IN_ONE_PIECE: Final = 0.95
_POINTS: Final = 60

Source = StudyTables | Traces | str | os.PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)
class Watchdog(MakesFinding):
    """The smallest limits that kill few enough healthy calls, and how many others would kill.

    Args:
        false_kills: Share of healthy calls that all limits together kill at most.
        role: Whose calls these are; empty for all.
        limits: The limits; none where the calls are too few.
        rows: One row for each limit, and one for all of them together: limit, at_s (seconds), killed (share of these
            calls), low, high (95 %). Without limits there is none.
        curve: One row for each limit and number of seconds, with the same columns. A hang is noticed after at_s.
        counts: calls, cut (calls that did not come to their end), runs, enough (independent calls that would say as
            much), needed (independent calls that limits take).
        notes: What was left out or assumed, a sentence each.
    """

    false_kills: float
    role: str
    limits: Limits
    rows: pd.DataFrame
    curve: pd.DataFrame
    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether there are limits that keep the promise."""
        return self.limits != Limits()

    def export(self, library: str) -> str:
        """Return code that gives another library the limits, and says what it cannot express.

        Args:
            library: One of `EXPORTS`: "langgraph", "httpx", "openai".

        Raises:
            ConfigurationError: No limit is known, or the library is another one.
        """
        if library not in EXPORTS:
            raise ConfigurationError(f"library is {library!r}: choose {join_names([*EXPORTS], 'or')}")
        limits = self._known()
        silence = max((each for each in (limits.first_token_s, limits.idle_s) if each is not None), default=None)
        return EXPORTS[library].format(limits=limits, silence=silence, read=silence or limits.total_s)

    def killed(self, source: Source) -> Interval:
        """Return the share of other healthy calls that the limits kill, all of them together.

        Args:
            source: Calls of the same system, as `watchdog` takes them.

        Raises:
            ConfigurationError: No limit is known, or no call of the source came to its end.
        """
        limits = self._known()
        sample = _sample(_calls_of(source, self.role, None)[0], list(KINDS))
        seconds = [getattr(limits, f"{kind}_s") or np.inf for kind in KINDS]
        return sample.share(np.asarray((sample.values > np.array(seconds)).any(axis=1)))

    def _known(self) -> Limits:
        if not self.is_known:
            raise ConfigurationError(f"no limit is known: {self._missing()}")
        return self.limits

    def _missing(self) -> str:
        """Say how many calls would be enough, or what else is missing."""
        needed, enough, cut = (self.counts[name] for name in ("needed", "enough", "cut"))
        if needed <= enough and not cut:
            return (
                "too many calls are as long as the longest, so nothing shows how much longer others may be; give "
                "durations that are not rounded, or allow more"
            )
        if needed <= enough:
            return (
                f"nobody knows how long {count_of(cut, 'call')} would have taken that did not come to the end. If they "
                "hung, say after how many seconds a call is a hang: hung_after_s, --hung-after"
            )
        return (
            f"{needed:,} independent calls are needed to promise {_share(self.false_kills)}, and these say as much as "
            f"{enough:,}; measure more runs, or allow more"
        )

    def finding(self) -> Finding:
        """Return the limits, what they kill, what the calls cannot say, and the code of other libraries."""
        promise, counts = f"at most {_share(self.false_kills)} of healthy calls", self.counts
        cut = f", {counts['cut']:,} of them cut, failed or still open" if counts["cut"] else ""
        source = (
            f"From {count_of(counts['calls'], 'model call')}{f' of {self.role}' if self.role else ''} in "
            f"{count_of(counts['runs'], 'independent run')}{cut}; they say as much as {counts['enough']:,} independent "
            "calls."
        )
        evidence = {"rows": self.rows, "curve": self.curve}
        if not self.is_known:
            missing = self._missing()
            why = f"{missing[0].upper()}{missing[1:]}."
            words = (f"Not known: limits that kill {promise}.", source, why, self.notes)
            return Finding(words, {"false_kills": self.false_kills, "limits": None}, evidence)
        seconds = dict(zip(self.rows["limit"], self.rows["at_s"], strict=True))
        named = join_names([f"{words} {seconds[kind]:g} s" for kind, words in KINDS.items() if kind in seconds])
        table = pd.DataFrame(
            {
                "limit": self.rows["limit"].replace(dict(KINDS)),
                "seconds": ["" if np.isnan(at_s) else f"{at_s:g}" for at_s in self.rows["at_s"]],
                "killed": [percent(share, 2) for share in self.rows["killed"]],
                percent(SURE): [
                    f"{percent(low, 2)} to {percent(high, 2)}"
                    for low, high in zip(self.rows["low"], self.rows["high"], strict=True)
                ],
            }
        )
        return Finding(
            (
                f"Limits that together kill {promise}: {named}.",
                source,
                f"Of as many fresh calls of the same system, they kill {promise}, in {percent(SURE)} of repeats.",
                table,
                self.notes,
                Code(f"limits = {self.limits!r}"),
                *(block for name in ("langgraph", "openai") for block in (f"For {name}:", Code(self.export(name)))),
            ),
            {"false_kills": self.false_kills, "limits": self.limits.text},
            evidence,
        )


def watchdog(
    traces_or_study: Source, false_kills: float = 0.01, *, role: str = "", hung_after_s: float | None = None
) -> Watchdog:
    """Return the smallest limits of model calls that kill few enough healthy ones.

    Calls that were cut, failed, or were still open count as longer than they were seen to be, and never as healthy.
    In a study, runs under a fault are left out.

    Args:
        traces_or_study: A study, traces, or where either is: a folder or a file that `traces import` reads.
        false_kills: Share of healthy calls that all limits together kill at most, between 0 and 1.
        role: Of which node's calls, for `Limits.by_role`; empty for all.
        hung_after_s: Calls that were cut after so many seconds or later hung, and are left out; None: nobody knows, and
            so they may have been healthy.

    Raises:
        ConfigurationError: A value cannot be used, or no model call came to its end.
        RecordError: A file cannot be read.
    """
    if isinstance(false_kills, bool) or not 0 < false_kills < 1:
        raise ConfigurationError(f"false_kills is {false_kills!r}: choose a share between 0 and 1, as 0.01")
    if hung_after_s is not None and not hung_after_s > 0:
        raise ConfigurationError(f"hung_after_s is {hung_after_s!r}: give seconds above 0, or None")
    calls, notes = _calls_of(traces_or_study, role, hung_after_s)
    kinds, more = _measured(calls)
    sample = _sample(calls, kinds)
    tolerated, enough = sample.limits(false_kills)
    seconds: dict[str, Any] = {}
    if tolerated is not None:
        seconds = dict(zip(kinds, map(_rounded_up, tolerated), strict=True))

    def row(limit: str, at_s: float, is_beyond: Any) -> dict[str, Any]:
        share = sample.share(np.asarray(is_beyond))
        return {"limit": limit, "at_s": at_s, "killed": share.estimate, "low": share.low, "high": share.high}

    rows = [row(kind, at_s, sample.values[:, kinds.index(kind)] > at_s) for kind, at_s in seconds.items()]
    if rows:
        rows.append(row("together", np.nan, (sample.values > np.array([*seconds.values()])).any(axis=1)))
    # At the durations that leave fewer and fewer calls beyond them.
    shares = np.geomspace(1.0, 1.0 / len(sample.values), _POINTS)
    places = np.unique(np.round((1.0 - shares) * (len(sample.values) - 1)).astype(np.int64))
    curve = [
        row(kind, float(at_s), durations > at_s)
        for kind, durations in zip(kinds, sample.values.T, strict=True)
        for at_s in np.unique(np.sort(durations)[places])
    ]
    columns = ["limit", "at_s", "killed", "low", "high"]
    cut, needed = int((~calls["is_whole"]).sum()), calls_needed(len(kinds), false_kills)
    return Watchdog(
        false_kills,
        role,
        Limits(**{f"{kind}_s": at_s for kind, at_s in seconds.items()}),
        pd.DataFrame(rows, columns=columns),
        pd.DataFrame(curve, columns=columns),
        {"calls": len(calls), "cut": cut, "runs": sample.units, "enough": int(enough), "needed": needed},
        (*notes, *more),
    )


# ---- the calls


def _calls_of(source: Source, role: str, hung_after_s: float | None) -> tuple[pd.DataFrame, list[str]]:
    """Return one row per model call, and notes. Columns: role, unit, is_whole, and seconds by the names of limits."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        is_study = any((path / name).is_file() for name in (MANIFEST, DESIGN)) and not is_recording(path)
        source = Study.load(path) if is_study else import_traces(path)
    calls, notes = _of_traces(source) if isinstance(source, Traces) else _of_study(source)
    if role and role not in set(calls["role"]):
        raise ConfigurationError(f"role is {role!r}: the calls are of {join_names(sorted(set(calls['role'])))}")
    calls = calls[calls["role"] == role] if role else calls
    if hung_after_s is not None:
        is_hung = ~calls["is_whole"] & (calls["total"] >= hung_after_s)
        calls = calls[~is_hung]
        notes.append(f"{count_of(int(is_hung.sum()), 'call')} cut after {hung_after_s:g} s or later count as hung.")
    if not calls["is_whole"].any():
        raise ConfigurationError(
            f"none of {count_of(len(calls), 'model call')} came to its end, so no duration is known; give healthy runs"
        )
    return calls.reset_index(drop=True), notes


def _of_study(study: StudyTables) -> tuple[pd.DataFrame, list[str]]:
    is_healthy = study.runs["fault"].astype("str") == "none"
    runs, calls, struck = study.runs[is_healthy].set_index("run_id"), study.calls, int((~is_healthy).sum())
    is_model_call = (calls["seen_from"] == "client") & (calls["kind"] == "llm") & (calls["outcome"] != "refused")
    calls = calls[is_model_call & calls["run_id"].isin(runs.index)]
    horizon_s = calls["run_id"].map(runs["horizon_s"])
    total_s = calls["latency_s"].fillna(horizon_s - calls["started_at_s"])
    return _frame(
        role=calls["role"].astype("str"),
        # Alternatives are compared on the same seeds: on the same draws of latencies.
        unit=calls["run_id"].map(runs["seed"]),
        is_whole=calls["outcome"] == "ok",
        total=total_s,
        first_token=calls["first_token_at_s"] - calls["started_at_s"],
        idle=calls["longest_gap_s"],
    ), [f"{count_of(struck, 'run')} under a fault were left out."] if struck else []


def _of_traces(traces: Traces) -> tuple[pd.DataFrame, list[str]]:
    runs, calls = traces.runs.set_index("trace_id"), traces.spans[traces.spans["kind"] == "llm"]
    until_s = calls["ended_at_s"].fillna(calls["trace_id"].map(runs["observed_until_s"]))
    return _frame(
        role=calls["role"].astype("str"),
        unit=calls["trace_id"].map(runs["session"]),
        is_whole=(calls["outcome"] == "ok") & calls["ended_at_s"].notna(),
        total=until_s - calls["started_at_s"],
        first_token=calls["first_token_at_s"] - calls["started_at_s"],
        idle=np.nan,
    ), list(traces.notes)


def _frame(**columns: Any) -> pd.DataFrame:
    # Durations that differ by the rounding of instants alone are one.
    return pd.DataFrame(columns).round(dict.fromkeys(KINDS, 9))


def _measured(calls: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the limits that the calls can say anything of, and why they cannot of the others."""
    whole = calls[calls["is_whole"]]
    is_streamed = whole["first_token"] < _IN_ONE_PIECE * whole["total"]
    known = {"total": True, "first_token": is_streamed.any(), "idle": (whole["idle"] > 0).any()}
    missing, untimed, notes = [KINDS[kind] for kind in KINDS if not known[kind]], whole["first_token"].isna(), []
    if missing:
        what = join_names(missing, "or")
        notes.append(f"No limit of {what}: the answers came in one piece, or nobody timed their tokens.")
    if known["first_token"] and untimed.any():
        count = count_of(int(untimed.sum()), "call")
        notes.append(f"{count} without the time of a first token count as if it had come at their end.")
    return [kind for kind in KINDS if known[kind]], notes


def _sample(calls: pd.DataFrame, kinds: Sequence[str]) -> ToleranceSample:
    seconds = {"total": calls["total"], "first_token": calls["first_token"].fillna(calls["total"])}
    values = pd.DataFrame({**seconds, "idle": calls["idle"].fillna(0.0)})[list(kinds)].to_numpy(dtype="float64")
    return ToleranceSample.of(values, calls["is_whole"].to_numpy(), pd.factorize(calls["unit"])[0].astype(np.int64))


def _rounded_up(seconds: float) -> float:
    """Return seconds with three digits, and no fewer seconds."""
    step = 10.0 ** (np.floor(np.log10(seconds)) - 2)
    return float(f"{np.ceil(seconds / step - 1e-9) * step:.3g}")


def _share(share: float) -> str:
    return f"{100 * share:g}%"
