"""Write a recording: the tap on the seam, and the file that grows with each finished run.

    with RecordingWriter.begin("recordings/monday", manifest, run_ids) as writer, attach_taps(writer.tape):
        writer.add(measured)                    # one line, in the file before this returns

A line is one write to the system, so a process that is killed loses no run that was added.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, BinaryIO, Self

from docmind_lab.analysis.tables.records import CallRecord
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_json, write_whole
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.experiments.recordings.caps import text_of
from docmind_lab.experiments.recordings.recording import FORMAT, MANIFEST, RUNS, End, RecordedCall, RecordedRun
from docmind_lab.experiments.recordings.replay import request_digest
from docmind_lab.network.attempts import Attempt, LogicalCall
from docmind_lab.network.taps import Traffic

_RETRY_HEADERS = ("retry-after-ms", "retry-after", "x-should-retry")
_ENDS: Mapping[str, End] = {"ok": "ok", "error": "error", "timeout": "cut", "cancelled": "cut"}


@dataclass
class Tape:
    """A tap on the seam that notes what the tables do not hold: how attempts really ended, and what came back.

    run_ids: of the runs to record, without warm-ups. with_text: keep requests' digests and responses' bodies.
    """

    run_ids: Collection[str]
    with_text: bool = False
    _seen: dict[str, dict[tuple[str, int], dict[str, Any]]] = field(default_factory=dict, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def sending(self, call: LogicalCall) -> None:
        """Do nothing: every request may be sent and recorded."""

    def ended(self, attempt: Attempt, traffic: Traffic) -> None:
        """Note how the attempt ended and what came back."""
        call = attempt.call
        if call.run_id not in self.run_ids:
            return
        headers = traffic.headers
        said: dict[str, Any] = {
            "end": _ENDS.get(attempt.outcome, "cut"),
            "status": attempt.status,
            "retry_after": tuple((name, headers[name]) for name in _RETRY_HEADERS if name in headers),
        }
        if self.with_text:
            is_whole = attempt.outcome == "ok" or (attempt.status or 0) >= 400
            said |= {
                "digest": request_digest(traffic.sent) if traffic.sent else "",
                "content_type": headers.get("content-type", ""),
                "body": text_of(traffic) if is_whole else None,
            }
        with self._lock:
            self._seen.setdefault(call.run_id, {})[call.call_id, attempt.number] = said

    def pop(self, run_id: str) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the notes of a run, and drop them."""
        with self._lock:
            return self._seen.pop(run_id, {})


@dataclass
class RecordingWriter:
    """A recording being written; a context manager. An exception leaves it marked as not complete."""

    folder: Path
    manifest: Mapping[str, Any]
    tape: Tape
    _file: BinaryIO = field(init=False, repr=False)

    @classmethod
    def begin(
        cls,
        folder: str | os.PathLike[str],
        manifest: Mapping[str, Any],
        run_ids: Collection[str],
        with_text: bool = False,
    ) -> RecordingWriter:
        """Begin a recording in a folder without one. manifest: of the live study. Raises: ConfigurationError."""
        place = require_no_recording(folder)
        said = {**manifest, "recording_format": FORMAT, "has_text": with_text, "complete": False}
        return cls(place, said, Tape(frozenset(run_ids), with_text))

    def __enter__(self) -> Self:
        self._write_manifest(self.manifest)
        # Unbuffered and appending: what was added is the system's, whatever becomes of this process.
        self._file = open(self.folder / RUNS, "ab", buffering=0)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def add(self, measured: MeasuredRun) -> None:
        """Write a finished run to the recording."""
        run = recorded_run(measured, self.tape.pop(measured.run.run_id))
        self._file.write(run.to_json().encode() + b"\n")

    def complete(self, manifest: Mapping[str, Any]) -> None:
        """Write how the study ended. manifest: entries to add to those written at the beginning."""
        self._write_manifest({**self.manifest, **manifest})

    def _write_manifest(self, said: Mapping[str, Any]) -> None:
        write_whole(self.folder / MANIFEST, as_json(said))


def require_no_recording(folder: str | os.PathLike[str]) -> Path:
    """Make the folder if needed, and return it. Raises: ConfigurationError if it holds a recording."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"record: {place} cannot be made ({error.strerror}); choose another folder") from error
    if (place / MANIFEST).exists() or (place / RUNS).exists():
        raise ConfigurationError(f"record: {place} holds a study or a recording already; choose another folder")
    return place


def recorded_run(measured: MeasuredRun, seen: Mapping[tuple[str, int], Mapping[str, Any]]) -> RecordedRun:
    """Convert a measured run to its recorded form. seen: the tape's notes on its attempts."""
    run = measured.run
    calls = [
        _recorded_call(row, run.horizon_s, seen.get((row.call_id, row.attempt), {}))
        for row in measured.calls
        if row.seen_from == "client" and row.outcome != "refused"
    ]
    same = {each.name: getattr(run, each.name) for each in fields(RecordedRun) if each.name != "calls"}
    return RecordedRun(**same | {"returned_at_s": _number(run.returned_at_s)}, calls=tuple(calls))


def _recorded_call(row: CallRecord, horizon_s: float, said: Mapping[str, Any]) -> RecordedCall:
    ended_at_s = _number(row.ended_at_s)
    # What a tool does by itself passes no network, so the tape has no note of how it ended.
    noted = {"end": _ENDS.get(row.outcome, "cut"), **said}
    if ended_at_s is None:
        # Still open at the horizon: what came after it was not observed.
        noted = {"end": "cut", "status": None}
    same = {name: getattr(row, name) for name in ("call_id", "kind", "role", "step", "attempt", "error_type")}
    return RecordedCall(
        **same,
        started_at_s=row.started_at_s,
        first_byte_at_s=_number(row.first_byte_at_s),
        ended_at_s=horizon_s if ended_at_s is None else ended_at_s,
        queue_wait_s=_number(row.queue_wait_s),
        input_tokens=_integer(row.input_tokens),
        output_tokens=_integer(row.output_tokens),
        **noted,
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _integer(value: float) -> int | None:
    return None if math.isnan(value) else int(value)
