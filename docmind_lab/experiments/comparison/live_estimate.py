"""What a live comparison is expected to send, said before it sends anything."""

from __future__ import annotations

import dataclasses

from docmind_lab.core.errors import DocmindLabError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.replays import simulated_name
from docmind_lab.experiments.comparison.virtual import simulated
from docmind_lab.experiments.comparison.wall import has_server_log


def asks_live_endpoints(comparison: Comparison, settings: Settings) -> bool:
    """Whether some of its requests go to servers that are not the lab's own, and may cost something."""
    return comparison.clock == "wall" and not (comparison.kind.has_server_log and has_server_log(settings))


def expected_to_send(comparison: Comparison, settings: Settings) -> str:
    """A sentence with the requests and tokens of a comparison, from a few of its runs in virtual time.

    Takes some seconds, and sends nothing. A graph that simulated services cannot answer has no pilot; the sentence says
    why.
    """
    # Function-level: a pilot needs the whole simulation, which a comparison without endpoints does not.
    from docmind_lab.experiments.recordings.pilot import (  # noqa: PLC0415
        PILOT_QUESTIONS,
        request_estimate,
        without_endpoints,
    )

    pilot = dataclasses.replace(
        comparison,
        clock="virtual",
        runs=min(PILOT_QUESTIONS, comparison.runs),
        workload=simulated_name(comparison.workload),
    )
    system = without_endpoints(simulated(pilot, settings))
    try:
        return str(request_estimate(pilot.orders(), system, comparison.runs))
    except DocmindLabError as error:
        return f"{comparison.total_runs} runs; how many requests is not known, since no pilot can be run: {error}"
