"""Files of tests that take longest, in that order, for two workers: one begun last would leave the other without work.

By the seconds of each file in `make test`; a file of some seconds need not be named.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = (
    "test_cli.py",
    "test_enforcement.py",
    "test_fault_matrix.py",
    "test_virtual_measurement.py",
    "test_sweep_interrupted.py",
    "test_total_deadline.py",
    "test_coordinator.py",
    "test_research_workload.py",
    "test_live_recording.py",
    "test_peer_sockets.py",
    "test_lint_graphs.py",
    "test_research_completion.py",
    "test_same_tables.py",
    "test_privacy.py",
    "test_virtual_door.py",
    "test_plots.py",
    "test_faults_on_the_wire.py",
    "test_benchmarks.py",
    "test_load_crowd.py",
    "test_live_endpoints.py",
    "test_coverage.py",
    "test_wall_door.py",
    "test_leaks.py",
    "test_fallback.py",
    "test_cli_studies.py",
    "test_supervisor_graph.py",
    "test_agreement.py",
    "test_wall_queue.py",
    "test_what_goes_on.py",
    "test_answer_stream.py",
    "test_virtual_determinism.py",
    "test_tune.py",
    "test_findings_on_real_runs.py",
)
