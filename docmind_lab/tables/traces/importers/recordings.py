"""Recordings of the lab's live studies: a line for each run, with its calls as the network seam saw them.

    recording = Recording.load("recordings/monday")
    recording                                       # how many runs and calls, of which study
    recording.traces("recordings/monday")           # its runs as traces, without their texts

A folder has two files: `runs.jsonl`, a JSON object for each run that is over, and `manifest.json`, which says what the
study was, and at its end that it is complete. A kill leaves at most one torn line, the last, which readers leave out.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import ConfigDict, TypeAdapter

from docmind_lab.core.errors import NoSuchRecord, RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.text import count_of
from docmind_lab.tables.traces.rules import CONTROLS
from docmind_lab.tables.traces.trace_tables import OWN_ENDS, Span, TracedRun, Traces

RUNS, MANIFEST = "runs.jsonl", "manifest.json"
FORMAT: Final = 1
"""Of the folder. Raised when an older reader would misread a newer one."""

End = Literal["ok", "error", "cut"]
"""How a recorded call ended: answered, failed (a status of 400 or more, or a connection that broke), or cut by its
client, or by the end of what was observed, before it did either.
"""


RunKey = tuple[str, str, int, str]
"""By which a recording finds a run: alternative, its options, seed and question."""


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """One recorded attempt. Instants are seconds since the run's start, seen by its client; None: not reached.

    call_id: "kind/role/step", the same in every run that makes the call. ended_at_s: of a call that was cut, when.
    retry_after: what the response asked for, as its headers `retry-after-ms` or `retry-after` put it. With text only:
    digest (of the request), content_type and body (of the response).
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    call_id: str
    kind: str
    role: str = ""
    step: str = ""
    attempt: int
    started_at_s: float
    first_byte_at_s: float | None = None
    ended_at_s: float
    queue_wait_s: float | None = None
    end: End
    status: int | None = None
    error_type: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    retry_after: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    content_type: str = ""
    body: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Key of the attempt within its run: call id and attempt number."""
        return self.call_id, self.attempt


@dataclass(frozen=True)
class RecordedRun:
    """One recorded run. returned_at_s: when its caller had an answer; None if it had none by the horizon."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    alternative: str
    alternative_options: str
    seed: int
    question_id: str
    decision_timeout_s: float
    horizon_s: float
    deadline_propagation: bool
    outcome: str
    returned_at_s: float | None
    calls: tuple[RecordedCall, ...] = field(repr=False)

    @property
    def key(self) -> RunKey:
        """Key by which a replay finds the run."""
        return self.alternative, self.alternative_options, self.seed, self.question_id

    @functools.cached_property
    def _by_key(self) -> Mapping[tuple[str, int], RecordedCall]:
        return {call.key: call for call in self.calls}

    def call(self, call_id: str, attempt: int) -> RecordedCall | None:
        """Return an attempt of a call; None if the run did not make it."""
        return self._by_key.get((call_id, attempt))

    @property
    def trace_id(self) -> str:
        """The id of the run as a trace."""
        return "/".join(map(str, self.key))

    def traced(self, source: str) -> TracedRun:
        """Return the run as a trace has it. source: where it was read from."""
        outcome = self.outcome if self.outcome in OWN_ENDS else "cut"
        returned_at_s = self.returned_at_s
        last_at_s = max((call.ended_at_s for call in self.calls), default=0.0)
        return TracedRun(
            trace_id=self.trace_id,
            session=str(self.seed),
            source=source,
            ended_at_s=NAN if outcome == "cut" else _or_nan(returned_at_s),
            observed_until_s=self.horizon_s if returned_at_s is None else max(returned_at_s, last_at_s),
            outcome=outcome,
            limit_s=self.decision_timeout_s if outcome == "cut" and returned_at_s is not None else NAN,
            labels=json.dumps({"question_id": self.question_id, "clock": "wall"}),
        )

    def spans(self) -> list[Span]:
        """Return the calls of the run as spans."""
        return [
            Span(
                trace_id=self.trace_id,
                span_id=f"{call.call_id}#{call.attempt}",
                parent_id="",
                role=call.role,
                # What ended well without a response passed no network: the tool around a request, or one without.
                kind="agent" if call.end == "ok" and call.status is None else call.kind,
                started_at_s=call.started_at_s,
                ended_at_s=call.ended_at_s,
                first_byte_at_s=_or_nan(call.first_byte_at_s),
                outcome=call.end,
                attempt=call.attempt,
                input_tokens=_or_nan(call.input_tokens),
                output_tokens=_or_nan(call.output_tokens),
                queue_wait_s=call.queue_wait_s or 0.0,
            )
            for call in self.calls
        ]

    def to_json(self) -> str:
        """Return the run as one line of JSON. Empty fields of its calls are left out."""
        values = dataclasses.asdict(self)
        values["calls"] = [
            {name: value for name, value in call.items() if value not in _NOTHING} for call in values["calls"]
        ]
        return json.dumps(values, separators=(",", ":"))


_NOTHING: Final[tuple[Any, ...]] = (None, "", (), [])
_RUN: Final = TypeAdapter(RecordedRun)


@dataclass(frozen=True, eq=False)
class Recording(ShownAsCode):
    """A recording read from a folder. manifest: of the live study, written at its begin and again at its end."""

    runs: tuple[RecordedRun, ...]
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Recording:
        """Read the recording in a folder. Raises: RecordError if there is none, a newer one, or a broken line."""
        place = Path(folder)
        try:
            manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
            lines = (place / RUNS).read_text(encoding="utf-8").split("\n")
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoSuchRecord(f"{place} holds no recording; make one with --record on the wall clock") from error
        except (OSError, ValueError) as error:
            raise RecordError(
                f"{place}: its {MANIFEST} or {RUNS} cannot be read ({error}); take the folder from a copy, or record "
                "again"
            ) from error
        if not isinstance(manifest, dict) or "recording_format" not in manifest:
            raise RecordError(
                f"{place} holds no recording that this version reads: {MANIFEST} is not of one; take the folder from a "
                "copy, or record again"
            )
        if not 0 < int(manifest.get("recording_format", 0)) <= FORMAT:
            raise RecordError(f"{place} holds no recording that this version reads; upgrade docmind_lab")
        # What follows the last line end is a line that a kill has torn, or nothing.
        return cls(tuple(_read(line, number, place) for number, line in enumerate(lines[:-1], 1)), manifest)

    @property
    def id(self) -> str:
        """Id of the live study."""
        return str(self.manifest["study_id"])

    @property
    def design(self) -> Mapping[str, Any]:
        """The design of the live study, which determined its runs."""
        return dict(self.manifest["design"])

    @property
    def calls(self) -> int:
        """Number of attempts in the recording."""
        return sum(len(run.calls) for run in self.runs)

    @functools.cached_property
    def by_key(self) -> dict[RunKey, RecordedRun]:
        """The runs by their keys."""
        return {run.key: run for run in self.runs}

    @functools.cached_property
    def by_question(self) -> dict[tuple[int, str], list[RecordedRun]]:
        """The runs by seed and question, under any alternative, in a fixed order."""
        runs: dict[tuple[int, str], list[RecordedRun]] = {}
        for run in sorted(self.runs, key=lambda run: run.key):
            runs.setdefault((run.seed, run.question_id), []).append(run)
        return runs

    def __repr__(self) -> str:
        state = "complete" if self.manifest.get("complete") else "not complete"
        text = "with texts" if self.manifest.get("has_text") else "without texts"
        return f"Recording of {self.id}: {len(self.runs)} runs, {self.calls} calls, {text}, {state}"

    def traces(self, source: str) -> Traces:
        """Return its runs as traces: those of its control, which nothing cut, or all if it has none.

        source: where it was read from, for the tables. Raises: RecordError if it holds no run.
        """
        control = [run for run in self.runs if run.alternative in CONTROLS]
        chosen = control or self.runs
        if not chosen:
            raise RecordError(f"{source} holds no run; record again")
        spans = [span for run in chosen for span in run.spans()]
        left_out = len(self.runs) - len(chosen)
        why = f"left out: {count_of(left_out, 'run')} with a deadline" if left_out else "none was left out"
        notes = [f"{len(spans)} of {self.calls} calls were used; {why}."]
        if not control:
            notes.append("No run was recorded without a deadline, so those that theirs ended count as cut.")
        return Traces.of([run.traced(source) for run in chosen], spans, notes=tuple(notes))


def is_recording(folder: Path) -> bool:
    """Whether a folder holds a recording."""
    return (folder / RUNS).is_file() and (folder / MANIFEST).is_file()


def _read(line: str, number: int, place: Path) -> RecordedRun:
    try:
        return _RUN.validate_json(line)
    except ValueError as error:
        raise RecordError(
            f"{place / RUNS}, line {number}: no recorded run ({error}); record the study again"
        ) from error


def _or_nan(value: float | None) -> float:
    return NAN if value is None else value
