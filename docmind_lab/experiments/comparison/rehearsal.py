"""A rehearsal of a replay: whether a user's graph runs on simulated texts where a recording holds none."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.budgets import Budget
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.virtual import replaying, simulated
from docmind_lab.experiments.measurement.run import RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.experiments.recordings.recording import Recording
from docmind_lab.workloads.kinds import OWN_PREFIX

# Inputs that lead through other nodes are rare beside the first ones, and each costs a run.
_MOST_INPUTS = 5

_rehearsed: set[tuple[str, str, str]] = set()


def require_replayable(comparison: Comparison, recording: Recording, folder: Path, settings: Settings) -> None:
    """Return if a user's graph does not fail on simulated texts, by a run without a deadline for each of some inputs.

    A graph that takes its model's text apart by itself finds no structure in a simulated one. The lab's own systems,
    and recordings with texts, are not looked at.

    Args:
        comparison: The replay.
        recording: What it replays.
        folder: Where the recording is.
        settings: Without live endpoints.

    Raises:
        ConfigurationError: A run fails where the recorded one did not.
    """
    if not comparison.workload.startswith(OWN_PREFIX) or recording.manifest.get("has_text"):
        return
    key = (recording.id, comparison.workload, comparison.documents.name)
    if key in _rehearsed:
        return
    alone = dataclasses.replace(
        comparison, alternatives=parse_alternatives("unguarded"), budget=Budget(), enforced=False
    )
    options = replaying(simulated(alone, settings), folder).options
    system = SimulatedSystem(settings, kind=alone.workload, corpus=alone.documents.corpus)
    try:
        for order in _orders(alone, recording):
            run = system.measure(order, options).run
            if run.outcome == "failed":
                error = f"{run.error_type} in node {run.error_node}" if run.error_node else run.error_type
                raise ConfigurationError(
                    f"replay: {folder} has no texts, and on simulated ones the graph fails with {error}, "
                    "where the recorded run did not; record again with the texts: record_text=True (--record-text)"
                )
    finally:
        system.close()
    _rehearsed.add(key)


def _orders(comparison: Comparison, recording: Recording) -> Iterator[RunOrder]:
    """Yield a run for each input of which a recorded run did not fail."""
    sound = {(run.seed, run.question_id) for run in recording.runs if run.outcome != "failed"}
    inputs: set[str] = set()
    for order in comparison.orders():
        name = order.question.id
        if (order.facts.seed, name) in sound and name not in inputs and len(inputs) < _MOST_INPUTS:
            inputs.add(name)
            yield order
