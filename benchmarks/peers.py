"""Calls to peer agents over real sockets: how soon a cancel is there, and whether anything is left afterwards.

Peers that answer, give signs of life, ignore cancels, answer twice, are late or get lost; one of four in a process
that is killed on the way; parents that are cancelled at random. Each call must have one outcome, and each parent that
was not cancelled must go on once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.figures import Figure, sampled
from docmind_lab.core.deadlines import Deadline
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.network.snapshots import RawEvent
from docmind_lab.services.hosted_behaviour import PeerHabits
from docmind_lab.services.server import LogClient, ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.peers.caller import PeerCall, PeerCaller
from docmind_lab.systems.peers.client import PeerClients
from docmind_lab.systems.peers.correlation import PeerTimeouts

DELIVERED_MS = 50.0
"""Within which the median cancel is to be at its peer's server, on loopback."""

# A task of typical/20 takes 0.15 s: some are over in time, some not.
PROFILE = LatencyProfile.named("typical/20")
HABITS = PeerHabits(heartbeats=0.3, ignores_cancel=0.2, twice=0.2, late=0.2, lost=0.02, heartbeat_s=0.05, late_s=0.4)
TIMEOUTS = PeerTimeouts(timeout_s=0.2, hard_cap_s=0.5, cancel_s=0.25, listen_s=1.0)
_CALLS_OF_A_STEP = 4
# Eight calls at once: more would measure how busy two cores are.
_STEPS_AT_ONCE = 2
_CANCELLED_SHARE = 0.15
_TASK = {"question": "", "passages": []}
# For the deadline that a recorder has; none is propagated here.
_NO_LIMIT_S = 3600.0


@dataclass
class Storm:
    """What a storm of calls came to.

    outcomes: of each call by (run, call), one if all is well. retriggers: of each step that was not cancelled.
    cancelled_retriggers: of each that was, with calls still pending. left: what was there afterwards and not before:
    entries, tasks, timers, sockets. delivered_s: from the decision to cancel until the peer's server had the request.
    """

    outcomes: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    retriggers: list[int] = field(default_factory=list)
    cancelled_retriggers: list[int] = field(default_factory=list)
    too_late: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)
    delivered_s: list[float] = field(default_factory=list)


def storm(calls: int, seed: int = 7) -> Storm:
    """A storm of so many calls, in steps of four."""
    options = ServiceOptions(PROFILE, peers=HABITS)
    with ServiceProcess(options) as lasting, ServiceProcess(options) as doomed:
        log = LogClient(lasting.addresses.log_url)
        sockets_before = _open_sockets()
        found, recorders = asyncio.run(_weathered(calls // _CALLS_OF_A_STEP, seed, lasting, doomed))
        found.left += [f"socket {name}" for name in _open_sockets() - sockets_before]
        for recorder in recorders:
            _note_deliveries(found, recorder, log)
        log.close()
    return found


def _kill(service: ServiceProcess) -> None:
    """End its process at once, as a crash would: connections break, and whatever it was doing is lost."""
    process = service._process
    assert process is not None
    process.kill()
    process.wait()


async def _weathered(
    steps: int, seed: int, lasting: ServiceProcess, doomed: ServiceProcess
) -> tuple[Storm, list[Recorder]]:
    found, recorders = Storm(), []
    elsewhere = {"reader_4": f"{doomed.addresses.peers_url}/reader_4"}
    clients = PeerClients(lasting.addresses.peers_url, HttpClients(), elsewhere)
    caller = PeerCaller(clients, timeouts=TIMEOUTS)
    free = asyncio.Semaphore(_STEPS_AT_ONCE)
    await _warm(clients, "reader_1", "reader_4")

    async def one(number: int) -> None:
        async with free:
            if number == steps // 2:
                await asyncio.to_thread(_kill, doomed)
            draw = random.Random(f"{seed}/{number}")
            recorder = Recorder(f"storm-{seed}-{number}", draw.randrange(10**6), Deadline.after(_NO_LIMIT_S))
            recorders.append(recorder)
            calls = [PeerCall(f"call_{n}", f"reader_{n}", _TASK) for n in range(1, 5)]
            with recording(recorder):
                step = asyncio.create_task(caller.call(calls, step="0", logical_task_id=recorder.run_id))
            if draw.random() < _CANCELLED_SHARE:
                await asyncio.sleep(draw.uniform(0.0, 0.3))
                step.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await step
            retriggers = sum(event.event == "peer_retriggered" for event in recorder.snapshot().events)
            if not step.cancelled():
                found.retriggers.append(retriggers)
            elif any(
                event.detail["outcome"] == "cancelled" for event in _of(recorder.snapshot().events, "peer_decided")
            ):
                # Else its last call was decided in the very turn in which it was cancelled: too late to take it back.
                found.cancelled_retriggers.append(retriggers)

    await asyncio.gather(*(one(number) for number in range(steps)))
    await caller.idle()
    await clients.aclose()
    found.left += [f"entry {name}" for name in caller.correlator.store.pending()]
    found.left += [f"invocation {name}" for name in caller.correlator.known()]
    found.left += [f"task {task.get_name()}" for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    # The loop shows its timers to nobody; there is no other way to see that none is left.
    timers = getattr(asyncio.get_running_loop(), "_scheduled", ())
    found.left += [f"timer {timer!r}" for timer in timers if not timer.cancelled()]
    return found, recorders


async def _warm(clients: PeerClients, *peers: str) -> None:
    """The first request loads the SDK in its process, which is no part of a call."""
    for peer in peers:
        async for _ in clients.send(peer, _TASK, 60.0):
            pass


def deliveries(calls: int) -> list[float]:
    """Seconds from the timeout of each of so many calls, one after the other, until its peer had the cancel."""
    found = Storm()
    with ServiceProcess(ServiceOptions(PROFILE, peers=PeerHabits(late=1.0))) as services:
        log = LogClient(services.addresses.log_url)
        for recorder in asyncio.run(_cancelled_one_by_one(calls, services)):
            _note_deliveries(found, recorder, log)
        log.close()
    return found.delivered_s


async def _cancelled_one_by_one(calls: int, services: ServiceProcess) -> list[Recorder]:
    clients = PeerClients(services.addresses.peers_url, HttpClients())
    caller = PeerCaller(clients, timeouts=PeerTimeouts(timeout_s=0.05, hard_cap_s=0.05))
    await _warm(clients, "reader_1")
    recorders = [Recorder(f"cancel-{number}", number, Deadline.after(_NO_LIMIT_S)) for number in range(calls)]
    for recorder in recorders:
        with recording(recorder):
            call = PeerCall("call_1", "reader_1", _TASK)
            await caller.call([call], step="0", logical_task_id=recorder.run_id)
        await caller.idle()
    await clients.aclose()
    return recorders


def _note_deliveries(found: Storm, recorder: Recorder, log: LogClient) -> None:
    events = recorder.snapshot().events
    decided_at: dict[str, float] = {}
    for event in _of(events, "peer_decided"):
        call = str(event.detail["call"])
        found.outcomes.setdefault((recorder.run_id, call), []).append(str(event.detail["outcome"]))
        decided_at[call] = event.at
    found.too_late.update(str(event.detail["kind"]) for event in _of(events, "peer_too_late"))
    received_at = {row.call_id: row.received_at for row in log.rows(recorder.run_id)}
    for event in _of(events, "peer_cancel_sent"):
        cancel, call = str(event.detail["cancel"]), str(event.detail["call"])
        if cancel in received_at and call in decided_at:
            found.delivered_s.append(received_at[cancel] - decided_at[call])


def _of(events: tuple[RawEvent, ...], name: str) -> Iterator[RawEvent]:
    return (event for event in events if event.event == name)


def _open_sockets() -> set[str]:
    """Names of this process's sockets; none where the system does not tell."""
    try:
        descriptors = os.listdir("/proc/self/fd")
    except OSError:
        return set()
    names = set()
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            names.add(os.readlink(f"/proc/self/fd/{descriptor}"))
    return {name for name in names if name.startswith("socket:")}


def run(calls: int = 400) -> Iterator[Figure]:
    """How soon cancels are delivered, and how many things are left; raises nothing for a target that is missed."""
    alone_ms = [delivered_s * 1000 for delivered_s in deliveries(calls // 4)]
    yield sampled("cancel delivered", alone_ms, statistics.median, unit="ms", at_most=DELIVERED_MS)
    found = storm(calls)
    stormy_ms = [delivered_s * 1000 for delivered_s in found.delivered_s]
    yield sampled("cancel delivered, in a storm", stormy_ms, statistics.median, unit="ms")
    many = sum(len(outcomes) != 1 for outcomes in found.outcomes.values())
    yield Figure("calls without exactly one outcome", float(many), at_most=0.0)
    yield Figure("steps not retriggered exactly once", float(sum(n != 1 for n in found.retriggers)), at_most=0.0)
    yield Figure("entries, tasks, timers and sockets left", float(len(found.left)), at_most=0.0)
