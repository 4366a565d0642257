"""Fixed against adaptive timeouts of the primary agent, on runs in virtual time.

    compared = compare_timeouts([FixedTimeout(4.0), FixedTimeout(12.0), AdaptiveTimeout()], chunks=96)
    timeouts_summary(compared)

Every timeout meets the same chunks in the same order with the same latencies, one chunk after the other, since an
adaptive one learns from those before. There is no deadline: what is compared is the ladder's own timeout.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from docmind_lab.alternatives import Unguarded
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.measurement.derive import RunFacts
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import simulate
from docmind_lab.services.faults import Fault
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.virtual_door import PORT, VirtualDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.retries import retries_within_own_limits
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.staged.chunks import StagedChunk, staged_chunks
from docmind_lab.systems.staged.staged_state import StagedOptions
from docmind_lab.systems.staged.staged_workload import StagedWorkload
from docmind_lab.systems.staged.timeouts import AdaptiveTimeout, PrimaryTimeout

# Far beyond what any chunk takes; a run that hangs is given up at the timeout of its agent.
_NO_DEADLINE_S = 600.0


def compare_timeouts(
    timeouts: Sequence[PrimaryTimeout],
    *,
    chunks: int = 48,
    seed: int = 7,
    profile: str = "heavy_tail/3",
    faults: Sequence[str] = (),
) -> pd.DataFrame:
    """One row per timeout and chunk: policy (its place in the list and name), number, chunk, characters, timeout_s,
    primary_s, primary (how it ended), stage (that wrote first), returned_at_s, source_recall, answer_score.

    chunks: how many, the workload's own, again and again. profile, faults: of the simulated model, by name. An
    adaptive timeout should be fresh: it goes on from what it has seen.
    Raises: ConfigurationError without a timeout or a chunk.
    """
    if not timeouts or chunks < 1:
        raise ConfigurationError("compare_timeouts needs at least one timeout and one chunk")
    rows: list[dict[str, Any]] = []
    for place, timeout in enumerate(timeouts):
        around = Surroundings(ServiceAddresses.at_port(PORT), Settings())
        workload = StagedWorkload(around, StagedOptions(primary_timeout=timeout))
        try:
            for number, chunk in enumerate(_asked(chunks, seed)):
                order = _order(chunk, number, seed, profile)
                measured = simulate(order, workload, _door(profile, faults))
                rows.append({"policy": f"{place} {_said(timeout)}", "number": number, **_row(chunk, measured)})
        finally:
            workload.close()
    return pd.DataFrame(rows)


def timeouts_summary(compared: pd.DataFrame) -> pd.DataFrame:
    """One row per timeout: chunks, cut_share (agents that were cut), mean and worst of returned_at_s, mean recall."""
    grouped = compared.groupby("policy", sort=True)
    return pd.DataFrame(
        {
            "chunks": grouped.size(),
            "cut_share": grouped["primary"].agg(lambda ends: float((ends == "timeout").mean())),
            "timeout_mean_s": grouped["timeout_s"].mean(),
            "returned_mean_s": grouped["returned_at_s"].mean(),
            "returned_worst_s": grouped["returned_at_s"].max(),
            "source_recall": grouped["source_recall"].mean(),
        }
    )


def _said(timeout: PrimaryTimeout) -> str:
    return timeout.name if isinstance(timeout, AdaptiveTimeout) else f"{timeout.name} {timeout.timeout_s(0):g} s"


def _asked(count: int, seed: int) -> list[StagedChunk]:
    pool = sorted(staged_chunks(), key=lambda chunk: keyed_uniform(seed, "chunk", chunk.id))
    return [pool[number % len(pool)] for number in range(count)]


def _order(chunk: StagedChunk, number: int, seed: int, profile: str) -> RunOrder:
    alternative = Unguarded()
    facts = RunFacts.of(
        alternative,
        _NO_DEADLINE_S,
        horizon_s=2 * _NO_DEADLINE_S,
        study_id="timeouts",
        run_id=f"timeouts-{number}",
        workload="staged",
        seed=seed + number,
        question_id=chunk.id,
        router_injection=False,
        retries=retries_within_own_limits(alternative),
        latency_profile=profile,
        fault="none",
        stops_on_disconnect=True,
        clock="virtual",
        gold_topics=chunk.gold_topics,
    )
    return RunOrder(facts, alternative, chunk)


def _door(profile: str, faults: Sequence[str]) -> VirtualDoor:
    named = LatencyProfile.named(profile)
    parsed = tuple(Fault.parse(fault) for fault in faults)
    # The ladder searches nothing; the door wants to know what it would be searched in.
    return VirtualDoor(OpenAIService(named, parsed), VectorService(named), slots=named.slots)


def _row(chunk: StagedChunk, measured: MeasuredRun) -> dict[str, Any]:
    ended = {}
    for event in measured.events:
        if event.event == "stage_ended":
            detail = json.loads(event.detail)
            ended[detail["stage"]] = detail
    primary, final = ended.get("primary", {}), ended.get("finalize", {})
    return {
        "chunk": chunk.id,
        "characters": len(chunk.text),
        "timeout_s": primary.get("timeout_s"),
        "primary_s": primary.get("took_s"),
        "primary": primary.get("outcome", "cut"),
        "stage": final.get("outcome", ""),
        "returned_at_s": measured.run.returned_at_s,
        "source_recall": measured.run.source_recall,
        "answer_score": measured.run.answer_score,
    }
