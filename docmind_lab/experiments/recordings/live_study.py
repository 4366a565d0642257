"""A live study: what is recorded of it, and within which caps.

    with LiveStudy.open(Live(record="recordings/monday"), manifest, run_ids) as live, attach_taps(*live.taps):
        live.record([measured])                 # one line, in the file before this returns

A line is one write to the system, so a process that is killed loses no run that was added.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from io import FileIO
from pathlib import Path
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import join_names
from docmind_lab.core.whole_files import as_json, write_whole
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.experiments.recordings.caps import CapMeter, Caps, grpc_targets, text_of
from docmind_lab.experiments.recordings.replay import request_digest
from docmind_lab.experiments.world_options import AnyWorld, Live
from docmind_lab.network.attempts import Attempt, LogicalCall
from docmind_lab.network.taps import Tap, Traffic
from docmind_lab.tables.records import CallRecord
from docmind_lab.tables.traces.importers.recordings import FORMAT, MANIFEST, RUNS, End, RecordedCall, RecordedRun

_WARM_UP = "warm-up-"


_NOT_RECORDED: Final = {"peers": "peer agents' tasks are", "hops": "the hops' requests are"}
"""Workloads whose services go on by themselves, and what of them is not recorded."""


def require_recordable(live: Live, workload: str, out: Path | None) -> None:
    """Return if a live study can be recorded and capped as asked. Raises: ConfigurationError, before anything is sent.

    workload: its kind. out: the folder of the study.
    """
    Caps(live.max_requests, live.max_tokens)
    if live.record is None:
        if live.record_text:
            raise ConfigurationError("record_text is for a recording; name its folder with record (--record)")
        return
    if workload in _NOT_RECORDED:
        raise ConfigurationError(
            f"record: {_NOT_RECORDED[workload]} not recorded, since they go on in processes of their own after the "
            "request that asked for them; leave record out for this workload"
        )
    if out is not None and out.resolve() == Path(live.record).resolve():
        raise ConfigurationError(f"record and out are the same folder, {out}; give the recording one of its own")
    require_no_recording(live.record)


def _require_seen(measured: MeasuredRun) -> None:
    """Return if every model call of a run was seen as a request. Raises: ConfigurationError naming the node."""
    for call in measured.calls:
        is_of_client = call.kind == "llm" and call.seen_from == "client"
        if is_of_client and call.outcome == "ok" and math.isnan(call.first_byte_at_s):
            raise ConfigurationError(
                f"max_requests and max_tokens: the model of node {call.role or 'outside every node'} answered, and no "
                "HTTP request of it was seen (gRPC, a web socket, curl, a model in this process), so a cap cannot hold "
                "it; leave the caps out, or use a client of the model's HTTP interface"
            )


def _require_no_grpc() -> None:
    """Return if no gRPC channel is open in this process. Raises: ConfigurationError naming where one leads to."""
    if targets := grpc_targets():
        raise ConfigurationError(
            f"max_requests and max_tokens: a gRPC channel to {join_names(targets)} is open, and no cap sees its "
            "requests; use the client's HTTP transport (such as transport='rest'), or leave the caps out"
        )


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
        notes: dict[str, Any] = {
            "end": _ENDS.get(attempt.outcome, "cut"),
            "status": attempt.status,
            "retry_after": tuple((name, headers[name]) for name in _RETRY_HEADERS if name in headers),
        }
        if self.with_text:
            is_whole = attempt.outcome == "ok" or (attempt.status or 0) >= 400
            notes |= {
                "digest": request_digest(traffic.sent) if traffic.sent else "",
                "content_type": headers.get("content-type", ""),
                "body": text_of(traffic) if is_whole else None,
            }
        with self._lock:
            self._seen.setdefault(call.run_id, {})[call.call_id, attempt.number] = notes

    def pop(self, run_id: str) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the notes of a run, and drop them."""
        with self._lock:
            return self._seen.pop(run_id, {})


@dataclass
class LiveStudy:
    """A live study under way: its cap meter and its recording, if it has any.

    tape: for the recording. file: of its runs. folder, manifest: of the recording, which an exception leaves marked as
    not complete.
    """

    meter: CapMeter | None = None
    tape: Tape | None = None
    file: FileIO | None = None
    folder: Path = field(default_factory=Path)
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    @contextlib.contextmanager
    def open(cls, world: AnyWorld | None, manifest: Mapping[str, Any], run_ids: Iterable[str]) -> Iterator[LiveStudy]:
        """Open a study in a world, which is watched if it is `Live` and says so. manifest: of the unfinished study.

        Raises: ConfigurationError for caps that cannot hold, since gRPC has connections of its own, and for a folder
        that holds a recording.
        """
        with contextlib.ExitStack() as stack:
            study = cls()
            if isinstance(world, Live):
                caps = Caps(world.max_requests, world.max_tokens)
                if caps != Caps():
                    _require_no_grpc()
                    study.meter = CapMeter(caps)
                if world.record is not None:
                    study.folder, study.tape = require_no_recording(world.record), Tape(set(run_ids), world.record_text)
                    facts = {"recording_format": FORMAT, "has_text": world.record_text, "complete": False}
                    study.manifest = {**manifest, **facts}
                    write_whole(study.folder / MANIFEST, as_json(study.manifest))
                    # Unbuffered and appending: what was added is the system's, whatever becomes of this process.
                    study.file = stack.enter_context(open(study.folder / RUNS, "ab", buffering=0))
            yield study

    @property
    def taps(self) -> tuple[Tap, ...]:
        """Taps on the seam that the study's requests go through."""
        # The meter first: what it keeps back is not recorded either.
        taps: list[Tap] = [] if self.meter is None else [self.meter]
        return tuple(taps) if self.tape is None else (*taps, self.tape)

    def record(self, runs: Iterable[MeasuredRun]) -> list[MeasuredRun]:
        """Record runs, and return those that no cap cut short.

        Raises: ConfigurationError for a run that asked a model whose requests a cap cannot see.
        """
        whole = []
        for measured in runs:
            if self.meter is not None:
                _require_seen(measured)
                _require_no_grpc()
                if measured.run.run_id in self.meter.cut:
                    continue
            if self.tape is not None and self.file is not None:
                run = recorded_run(measured, self.tape.pop(measured.run.run_id))
                self.file.write(run.to_json().encode() + b"\n")
            whole.append(measured)
        return whole

    @property
    def cap_reached(self) -> str:
        """The cap that ended the study; empty if none did."""
        return "" if self.meter is None else self.meter.reached

    def manifest_entries(self) -> dict[str, Any]:
        """Return the manifest's entries on what was sent; empty without caps."""
        if self.meter is None:
            return {}
        meter = self.meter
        entries: dict[str, Any] = {
            "sent": {
                "requests": meter.requests,
                "tokens": meter.tokens,
                "requests_with_estimated_tokens": meter.estimated_requests,
                "runs_cut": sum(not run_id.startswith(_WARM_UP) for run_id in meter.cut),
            }
        }
        return entries | ({"ended_by": meter.reached} if meter.reached else {})

    def close(self) -> None:
        """Write into the recording how the study ended."""
        if self.file is not None:
            ended = {"complete": not self.cap_reached, **self.manifest_entries()}
            write_whole(self.folder / MANIFEST, as_json({**self.manifest, **ended}))


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


def _recorded_call(row: CallRecord, horizon_s: float, noted: Mapping[str, Any]) -> RecordedCall:
    ended_at_s = _number(row.ended_at_s)
    # What a tool does by itself passes no network, so the tape has no note of how it ended.
    noted = {"end": _ENDS.get(row.outcome, "cut"), **noted}
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
