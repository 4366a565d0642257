"""How long callers wait past a deadline under a hang and under a trickle every 0.3 s, 20 runs of each alternative."""

from __future__ import annotations

from collections.abc import Iterator

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.comparison import Comparison, run_comparison
from docmind_lab.services.faults import Fault
from docmind_lab.services.latency import LatencyProfile
from docmind_lab.settings import Settings

RUNS, TIMEOUT_S = 20, 1.0


def run() -> Iterator[str]:
    """Median and worst caller overrun; the last column compares the median with A's under the same fault."""
    for fault in ("hang", "trickle"):
        comparison = Comparison(
            decision_timeout_s=TIMEOUT_S,
            runs=RUNS,
            alternatives=parse_alternatives("A,A:per_read,B,C"),
            profile=LatencyProfile.named("typical/40"),
            faults=(Fault.parse(fault),),
            # The overrun is all that is asked: a hang is not watched to the usual horizon.
            horizon_factor=2.0 if fault == "hang" else 5.0,
            side_by_side=2,
        )
        table = run_comparison(comparison, Settings()).summary()
        reference_s = float(table["caller_overrun_median_s"].iloc[0])
        for label, row in table.iterrows():
            median_s, worst_s = row["caller_overrun_median_s"], row["caller_overrun_worst_s"]
            yield (
                f"{fault:8} {label!s:36} median {median_s * 1000:7.1f} ms  worst {worst_s * 1000:7.1f} ms"
                f"  ×{median_s / reference_s:.1f} of A"
            )
    yield "target: A, B and C ≤ 50 ms at the median and ≤ 150 ms at worst"
