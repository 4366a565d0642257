"""Peers that misbehave, and what each way of it costs: the same tasks under each, in virtual time.

    chaos_table(steps=20)

Every draw is keyed, so the tasks take equally long in every row. A cancel that gets lost or is ignored, an answer given
twice and a calendar that is wrong change nothing of what is decided, only what is wasted; peers that are late do.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from docmind_lab.core.deadlines import Deadline
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.network.snapshots import RawEvent
from docmind_lab.services.hosted_behaviour import PeerBehaviour, PeerHabits
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.virtual_door import PORT, VirtualDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.peers.caller import PeerCall, PeerCaller
from docmind_lab.systems.peers.client import PeerClients
from docmind_lab.systems.peers.correlation import PeerTimeouts
from docmind_lab.virtual_time import VirtualClock

_WELL_BEHAVED = PeerHabits()

CASES: Mapping[str, PeerHabits] = MappingProxyType(
    {
        "well-behaved": _WELL_BEHAVED,
        "cancel lost": replace(_WELL_BEHAVED, loses_cancel=1.0),
        "cancel ignored": replace(_WELL_BEHAVED, ignores_cancel=1.0),
        "answers twice": replace(_WELL_BEHAVED, twice=1.0),
        "clocks skewed": replace(_WELL_BEHAVED, clock_skew_s=3600.0),
        "half are late": replace(_WELL_BEHAVED, late=0.5),
        "all of it": PeerHabits(
            heartbeats=0.5, ignores_cancel=0.5, loses_cancel=0.5, twice=0.5, late=0.5, clock_skew_s=-3600.0
        ),
    }
)
"""Name of a way to misbehave → the habits that show it, each at its full share."""

_PEERS = 4
_TASK = {"question": "", "passages": []}
# For the deadline that a recorder has; none is propagated here.
_NO_LIMIT_S = 3600.0
# Peers that work on when the last step is over: a task of heavy_tail/3 takes minutes at most.
_AFTERWARDS_S = 300.0


def chaos_table(
    steps: int = 20,
    *,
    seed: int = 7,
    profile: str = "heavy_tail/3",
    timeouts: PeerTimeouts | None = None,
    cases: Mapping[str, PeerHabits] = CASES,
) -> pd.DataFrame:
    """One row per case: `steps` steps of four calls each.

    Columns: case (the index); calls; completed, timed_out, send_failed: what was decided; retriggers: one per step, if
    all is well; late_responses, duplicate_responses: ignored answers; worst_late_by_s; cancels, cancels_failed;
    cancel_latency_s: median of sending to answer, or to the end of its time; peer_worked_s, peer_wasted_s: seconds that
    peers' servers were busy, in all and for calls that were not completed.
    """
    rows = [_row(name, habits, steps, seed, profile, timeouts or PeerTimeouts()) for name, habits in cases.items()]
    return pd.DataFrame(rows).set_index("case")


def _row(name: str, habits: PeerHabits, steps: int, seed: int, profile: str, timeouts: PeerTimeouts) -> dict[str, Any]:
    latency = LatencyProfile.named(profile)
    model = OpenAIService(latency)
    door = VirtualDoor(model, model, peers=PeerBehaviour(latency, habits))
    recorders: list[Recorder] = []

    async def run() -> None:
        # Made inside, on the loop that they are used on.
        clients = PeerClients(ServiceAddresses.at_port(PORT).peers_url, HttpClients())
        caller = PeerCaller(clients, timeouts=timeouts)
        for step in range(steps):
            recorder = Recorder(f"{name}/{step}", seed + step, Deadline.after(_NO_LIMIT_S))
            recorders.append(recorder)
            calls = [PeerCall(f"call_{n}", f"reader_{n}", _TASK) for n in range(1, _PEERS + 1)]
            with recording(recorder):
                await caller.call(calls, step="0", logical_task_id=recorder.run_id)
            await caller.idle()
        await clients.aclose()

    longest_step_s = timeouts.hard_cap_s + timeouts.listen_s + 2 * timeouts.cancel_s
    VirtualClock(horizon_s=steps * longest_step_s + _AFTERWARDS_S, on_entry=[door.open]).run_async(run)
    return {"case": name} | _counted(recorders, door)


def _counted(recorders: list[Recorder], door: VirtualDoor) -> dict[str, Any]:
    events = [(recorder.run_id, event) for recorder in recorders for event in recorder.snapshot().events]
    decided = {
        (run_id, event.detail["call"]): event.detail["outcome"]
        for run_id, event in events
        if event.event == "peer_decided"
    }
    outcomes = Counter(decided.values())
    late = [event for _, event in events if event.event == "peer_too_late"]
    cancels = [event for _, event in events if event.event == "peer_cancel_ended"]
    worked, wasted = 0.0, 0.0
    for recorder in recorders:
        for row in door.log.rows(recorder.run_id):
            if (recorder.run_id, row.call_id) in decided and row.ended_at is not None:
                worked += row.ended_at - row.received_at
                if decided[recorder.run_id, row.call_id] != "completed":
                    wasted += row.ended_at - row.received_at
    return {
        "calls": len(decided),
        **{outcome: outcomes[outcome] for outcome in ("completed", "timed_out", "send_failed")},
        "retriggers": sum(event.event == "peer_retriggered" for _, event in events),
        "late_responses": _of_kind(late, "late"),
        "duplicate_responses": _of_kind(late, "duplicate"),
        "worst_late_by_s": max((event.detail["late_by_s"] for event in late), default=math.nan),
        "cancels": len(cancels),
        "cancels_failed": sum(event.detail["outcome"] == "failed" for event in cancels),
        "cancel_latency_s": statistics.median([e.detail["latency_s"] for e in cancels]) if cancels else math.nan,
        "peer_worked_s": worked,
        "peer_wasted_s": wasted,
    }


def _of_kind(late: list[RawEvent], kind: str) -> int:
    return sum(event.detail["kind"] == kind for event in late)
