"""Options for recordings and caps, and a live study that applies them while it runs."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from docmind_lab.analysis.cell_store import CellStore
from docmind_lab.analysis.text import join_names
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.experiments.recordings.caps import CapMeter, Caps
from docmind_lab.experiments.recordings.writing import RecordingWriter, require_no_recording
from docmind_lab.network.grpc_channels import grpc_targets
from docmind_lab.network.taps import Tap

_WARM_UP = "warm-up-"


_NOT_RECORDED: Final = {"peers": "peer agents' tasks are", "hops": "the hops' requests are"}
"""Workloads whose services go on by themselves, and what of them is not recorded."""


@dataclass(frozen=True)
class RecordingOptions:
    """What to record of a live study, what to replay, and how much may be sent.

    record: a folder for its recording. with_text: requests' digests and responses too. replay: the folder of the
    recording that runs in virtual time are a replay of.
    Raises: ConfigurationError for options that do not go together.
    """

    record: Path | None = None
    with_text: bool = False
    replay: Path | None = None
    caps: Caps = field(default_factory=Caps)

    def __post_init__(self) -> None:
        if self.with_text and self.record is None:
            raise ConfigurationError("record_text is for a recording; name its folder with record (--record)")
        if self.record is not None and self.replay is not None:
            raise ConfigurationError("record and replay: a replay sends nothing that could be recorded; leave one out")

    @property
    def is_live(self) -> bool:
        """Whether any option needs requests that are really sent."""
        return self.record is not None or self.caps.are_set

    def require_fit(self, clock: ClockName, workload: str, out: Path | None) -> None:
        """Return if the options fit the study. Raises: ConfigurationError, before anything is sent."""
        if self.is_live and clock == "virtual":
            named = "record" if self.record is not None else "max_requests and max_tokens"
            raise ConfigurationError(f"{named}: in virtual time nothing is sent; use the wall clock (--clock wall)")
        if self.record is not None:
            if workload in _NOT_RECORDED:
                raise ConfigurationError(
                    f"record: {_NOT_RECORDED[workload]} not recorded, since they go on in processes of their own after "
                    "the request that asked for them; leave record out for this workload"
                )
            if out is not None and out.resolve() == self.record.resolve():
                raise ConfigurationError(
                    f"record and out are the same folder, {out}; give the recording one of its own"
                )
            require_no_recording(self.record)


NO_RECORDING = RecordingOptions()


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
    targets = grpc_targets()
    if targets:
        raise ConfigurationError(
            f"max_requests and max_tokens: a gRPC channel to {join_names(targets)} is open, and no cap sees its "
            "requests; use the client's HTTP transport (such as transport='rest'), or leave the caps out"
        )


@dataclass
class LiveStudy:
    """A live study under way: its cap meter, its recording and its stored runs."""

    meter: CapMeter | None = None
    writer: RecordingWriter | None = None
    store: CellStore | None = None

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, kept: RecordingOptions, manifest: Mapping[str, Any], run_ids: Iterable[str], cells: Path | None
    ) -> Iterator[LiveStudy]:
        """Open a live study. manifest: of the study. cells: a folder for its finished runs.

        Raises: ConfigurationError for caps that cannot hold, since gRPC has connections of its own.
        """
        if kept.caps.are_set:
            _require_no_grpc()
        with contextlib.ExitStack() as stack:
            wire = cls(
                CapMeter(kept.caps) if kept.caps.are_set else None, store=None if cells is None else CellStore(cells)
            )
            if kept.record is not None:
                writer = RecordingWriter.begin(kept.record, manifest, frozenset(run_ids), kept.with_text)
                wire.writer = stack.enter_context(writer)
            yield wire

    @property
    def taps(self) -> tuple[Tap, ...]:
        """Taps on the seam that the study's requests go through."""
        # The meter first: what it keeps back is not recorded either.
        taps: list[Tap] = [] if self.meter is None else [self.meter]
        return tuple(taps) if self.writer is None else (*taps, self.writer.tape)

    def record(self, runs: Iterable[MeasuredRun]) -> Generator[MeasuredRun]:
        """Record and store each run, then yield it; a run that a cap cut short is left out.

        Raises: ConfigurationError for a run that asked a model whose requests a cap cannot see.
        """
        for measured in runs:
            if self.meter is not None:
                _require_seen(measured)
                _require_no_grpc()
            if self.meter is not None and measured.run.run_id in self.meter.cut:
                continue
            if self.writer is not None:
                self.writer.add(measured)
            if self.store is not None:
                self.store.write(measured.run.run_id, [measured])
            yield measured

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

    def close(self, manifest: Mapping[str, Any]) -> None:
        """Write into the recording how the study ended."""
        if self.writer is not None:
            self.writer.complete(manifest)
