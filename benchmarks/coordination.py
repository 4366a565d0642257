"""How long a question spends outside of all calls: the coordinator on simulated services, one question at a time.

Over loopback, with typical latencies divided by 20. The overhead is the coordinator's own figure: processing time
less the union of its LLM and retrieval calls. ADR-011 asks for at most 500 ms. Calls are 20 times as fast as typical
ones and the overhead is not, so its share of the processing time is far above that at typical latencies.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.figures import Figure, percentile_95, sampled
from benchmarks.pairs import DifferentWork
from docmind_lab.core.settings import Settings
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.questions import load_questions
from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

TARGET_MS = 100.0
QUESTIONS = 40
PROFILE = "typical/20"


def run(questions: int = QUESTIONS) -> Iterator[Figure]:
    """Median and 95th percentile of the overhead, and its share of the processing time."""
    overheads_ms, shares = [], []
    with MultiAgentCoordinator(Settings(), services=ServiceOptions(profile=LatencyProfile.named(PROFILE))) as asked:
        known = load_questions()
        # The first question uses every code path for the first time, and is not counted.
        for number in range(-1, questions):
            response = asked.process_query(known[number % len(known)].text, thread_id=f"question-{number}")
            if response.metadata["outcome"] != "answered":
                raise DifferentWork(f"a question was not answered: {dict(response.metadata)}")
            if number >= 0:
                overhead_s = response.optimization_metrics["coordination_overhead_s"]
                overheads_ms.append(overhead_s * 1000)
                shares.append(100 * overhead_s / response.processing_time)
    yield sampled("coordination overhead, median", overheads_ms, statistics.median, unit="ms")
    yield sampled("coordination overhead, P95", overheads_ms, percentile_95, unit="ms", at_most=TARGET_MS)
    yield sampled(f"its share of processing time ({PROFILE}), median", shares, statistics.median, unit="%")
