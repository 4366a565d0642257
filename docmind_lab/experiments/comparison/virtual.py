"""The simulated system of a comparison: what a worker needs to compute its runs, or to play a recording again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.comparison.comparison import OF_SERVICES, Comparison
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.recordings.replay import replay_options
from docmind_lab.services.server import ServiceOptions


def simulated(comparison: Comparison, settings: Settings) -> Simulated:
    """What a worker needs to compute runs of the comparison."""
    options = ServiceOptions(
        profile=comparison.profile,
        faults=comparison.faults,
        behaviour=comparison.server_behaviour,
        seed=comparison.seed,
        endpoints=comparison.kind.endpoints,
        **{name: getattr(comparison, name) for name in OF_SERVICES},
    )
    return Simulated(
        settings,
        options,
        client_retries=comparison.client_retries,
        corpus=comparison.documents.corpus,
        node_mode=comparison.node_mode,
        workload=comparison.workload,
    )


def replaying(system: Simulated, replay: Path | None) -> Simulated:
    """The system over services that answer from the recording in the folder; the same one for None."""
    if replay is None:
        return system
    options = replay_options(system.options, str(replay.resolve()), system.settings.llm.model)
    return dataclasses.replace(system, options=options)


def require_simulated(settings: Settings) -> None:
    """Return if the settings name no live endpoint. Raises: ConfigurationError naming the one they do."""
    if name := live_endpoint_of(settings):
        raise ConfigurationError(
            f"{name}: a live endpoint answers in real time, which a simulation cannot wait for; use the wall clock "
            "(--clock wall), or leave the setting out"
        )
