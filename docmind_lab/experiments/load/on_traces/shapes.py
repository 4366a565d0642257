"""Recorded runs as calls that wait for each other, so that one can see what a longer queue does to the rest of a run.

    shapes = shapes_of(traces)
    shapes[0].calls         # each with its time at the server, what it waits for, and the pause before it

A call waits for what had ended before it began: within the same step, and what that step waited for. Calls that
overlapped are parallel. The pause between the last of them and the call itself is kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.tables.frames import rows_by, rows_of
from docmind_lab.tables.traces.trace_tables import CALL_KINDS, Traces

# Instants of one event are read one after the other.
_TOGETHER_S: Final = 1e-6


@dataclass(frozen=True, slots=True)
class CallShape:
    """One call of a recorded run; a model call needs a slot of the server.

    Seconds from its slot: to the end of the server's work (service_s), to the end that its client saw (client_s), to
    the first token (generating_s), each inf where there is none; and to each write of a call that streams (writes_s).
    pause_s: from the last end of the calls before it to its begin, or from the start of the run. steps: numbers of the
    innermost and of the outermost step around it, within the run. since_step_s: from the begin of these two to its own.
    """

    is_model: bool
    service_s: float
    client_s: float
    before: tuple[int, ...]
    pause_s: float
    generating_s: float
    streams: bool
    writes_s: tuple[float, ...]
    steps: tuple[int, int]
    since_step_s: tuple[float, float]

    def slower(self, factor: float) -> CallShape:
        """Return the call with all of the server's work on it so many times as long."""
        return replace(
            self,
            service_s=self.service_s * factor,
            client_s=self.client_s * factor,
            generating_s=self.generating_s * factor,
            writes_s=tuple(each * factor for each in self.writes_s),
        )


@dataclass(frozen=True, slots=True)
class RunShape:
    """One recorded run: its calls by start, without those that hold others.

    end, result: the run's end and its first result, as calls that take no time; they follow the calls in the counts of
    what each waits for, and in the places of what waits for each call (after). outcome: how the run ended by itself.
    """

    calls: tuple[CallShape, ...]
    after: tuple[tuple[int, ...], ...]
    waits_for: tuple[int, ...]
    end: CallShape
    result: CallShape | None
    outcome: str

    @property
    def calls_in_a_row(self) -> int:
        """Most model calls that wait for each other, one after the other."""
        depth: list[int] = []
        for call in self.calls:
            depth.append(max((depth[each] for each in call.before), default=0) + call.is_model)
        return max(depth, default=0)

    @property
    def takes_s(self) -> float:
        """Seconds that it takes when no call waits for a slot."""
        ends: list[float] = []
        for call in [*self.calls, self.end]:
            ends.append(max((ends[each] for each in call.before), default=0.0) + call.pause_s + call.client_s)
        return ends[-1]


@dataclass(frozen=True)
class Recorded:
    """The recorded runs that queries are taken from: each drawn, or in order and then again from the first on."""

    shapes: tuple[RunShape, ...]
    in_order: bool = False

    def of_query(self, number: int, seed: int) -> RunShape:
        """Return the run of a query. seed: of its replicate."""
        if self.in_order:
            return self.shapes[number % len(self.shapes)]
        return self.shapes[int(keyed_uniform(seed, "recorded run", number) * len(self.shapes))]


@dataclass(frozen=True, slots=True)
class _Place:
    """A span with the spans around it, the outermost first, and itself at the end."""

    row: Mapping[str, Any]
    path: tuple[Mapping[str, Any], ...]


def shapes_of(traces: Traces) -> tuple[RunShape, ...]:
    """Return the shape of each run, in the order of the table. Raises: ConfigurationError if a run was cut."""
    cut = traces.runs[traces.runs["ended_at_s"].isna()]
    if len(cut):
        raise ConfigurationError(
            f"{len(cut)} of the {len(traces)} runs were cut, and how they would have gone on is not known: take runs "
            "without a deadline (traces.only)"
        )
    spans, generation = rows_by(traces.spans, "trace_id"), rows_by(traces.generation, "trace_id")
    return tuple(
        _shape(run, spans.get(run["trace_id"], []), generation.get(run["trace_id"], [])) for run in rows_of(traces.runs)
    )


def _shape(run: Mapping[str, Any], spans: list[dict[str, Any]], generation: list[dict[str, Any]]) -> RunShape:
    places = _leaf_calls(spans)
    steps: dict[str, int] = {}
    before = _before(places)
    stretches: dict[str, list[dict[str, Any]]] = {}
    for stretch in generation:
        stretches.setdefault(str(stretch["span_id"]), []).append(stretch)
    calls = tuple(
        _call(place, before[number], places, steps, stretches.get(place.row["span_id"], []))
        for number, place in enumerate(places)
    )
    end = _mark(float(run["ended_at_s"]), places)
    result_from_s = float(run["result_from_s"])
    result = None if math.isnan(result_from_s) else _mark(result_from_s, places)
    everything = [*calls, end, *([] if result is None else [result])]
    after: list[list[int]] = [[] for _ in everything]
    for number, call in enumerate(everything):
        for earlier in call.before:
            after[earlier].append(number)
    waits_for = tuple(len(call.before) for call in everything)
    return RunShape(calls, tuple(map(tuple, after)), waits_for, end, result, str(run["outcome"]))


def _leaf_calls(spans: list[dict[str, Any]]) -> list[_Place]:
    """Return the calls that hold no other call, by start."""
    by_id = {row["span_id"]: row for row in spans}
    places = []
    holds: set[str] = set()
    for row in spans:
        if row["kind"] not in CALL_KINDS:
            continue
        path, above = [row], by_id.get(row["parent_id"])
        while above is not None and all(above is not each for each in path):
            path.append(above)
            above = by_id.get(above["parent_id"])
        holds.update(each["span_id"] for each in path[1:])
        places.append(_Place(row, tuple(reversed(path))))
    leaves = [place for place in places if place.row["span_id"] not in holds]
    # Those that begin together stay in the order in which they were recorded, which is that of their coming.
    return sorted(leaves, key=lambda place: float(place.row["started_at_s"]))


def _end(row: Mapping[str, Any]) -> float:
    ended = float(row["ended_at_s"])
    return math.inf if math.isnan(ended) else ended


def _before(places: Sequence[_Place]) -> list[tuple[int, ...]]:
    """Return the calls that each call directly waits for."""
    number_of = {place.row["span_id"]: number for number, place in enumerate(places)}
    all_before: list[int] = []  # of each call, a bit for each call before it
    direct = []
    for number, place in enumerate(places):
        named = [number_of[each] for each in json.loads(place.row["after"]) if each in number_of]
        earlier = named or [each for each in range(number) if _ended_before(places[each], place)]
        mask = implied = 0
        for each in earlier:
            mask |= 1 << each
            implied |= all_before[each]
        all_before.append(mask | implied)
        direct.append(tuple(each for each in earlier if not implied >> each & 1))
    return direct


def _ended_before(early: _Place, late: _Place) -> bool:
    """Whether what the early call is part of had ended when what the late one is part of began."""
    for one, other in zip(early.path, late.path, strict=False):
        if one is not other:
            return bool(_end(one) <= other["started_at_s"] + _TOGETHER_S)
    return False


def _call(
    place: _Place,
    before: tuple[int, ...],
    places: Sequence[_Place],
    steps: dict[str, int],
    stretches: list[dict[str, Any]],
) -> CallShape:
    """Return the shape of a call. steps: numbers of the run's steps so far, which grow by those around the call."""
    row = place.row
    is_model = row["kind"] == "llm"
    started, ended = float(row["started_at_s"]), _end(row)
    logged = not math.isnan(row["server_started_at_s"])
    received = float(row["server_started_at_s"]) if logged else started
    done = _end({"ended_at_s": row["server_ended_at_s"]}) if logged else ended
    waited = 0.0 if math.isnan(row["queue_wait_s"]) else float(row["queue_wait_s"])
    served_from = received + waited
    around = [each for each in place.path[:-1] if each["kind"] != "agent"] or [row]
    inner, outer = around[-1], around[0]
    first_byte = float(row["first_byte_at_s"])
    streams = not math.isnan(first_byte) and first_byte < done
    generating = min((float(each["begun_at_s"]) for each in stretches), default=first_byte)
    return CallShape(
        is_model=is_model,
        service_s=max(0.0, done - served_from),
        client_s=max(0.0, ended - served_from),
        before=before,
        pause_s=_pause(started, before, places) + (received - started),
        generating_s=math.inf if math.isnan(generating) else max(0.0, generating - served_from),
        streams=streams,
        writes_s=tuple(sorted(float(each["ended_at_s"]) - served_from for each in stretches)) if streams else (),
        steps=(
            steps.setdefault(inner["span_id"], len(steps)),
            steps.setdefault(outer["span_id"], len(steps)),
        ),
        since_step_s=(started - float(inner["started_at_s"]), started - float(outer["started_at_s"])),
    )


def _pause(at: float, before: Sequence[int], places: Sequence[_Place]) -> float:
    return max(0.0, at - max((_end(places[each].row) for each in before), default=0.0))


def _mark(at: float, places: Sequence[_Place]) -> CallShape:
    """An instant of the run, as a call that takes no time and waits for all that had ended by then."""
    before = tuple(number for number, place in enumerate(places) if _end(place.row) <= at + _TOGETHER_S)
    pause = _pause(at, before, places)
    return CallShape(False, 0.0, 0.0, before, pause, math.inf, False, (), (-1, -1), (0.0, 0.0))
