"""Files of tests that take longest, in that order, for few workers: one begun last would leave the others without work.

By the seconds of each file in `make test`; a file of some seconds need not be named.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = (
    "test_cli.py",
    "test_enforcement.py",
    "test_same_tables.py",
    "test_fault_matrix.py",
    "test_benchmarks.py",
    "test_virtual_measurement.py",
    "test_coordinator.py",
    "test_plots.py",
    "test_virtual_door.py",
    "test_sweep_interrupted.py",
    "test_total_deadline.py",
    "test_fallback.py",
    "test_faults_on_the_wire.py",
    "test_live_endpoints.py",
    "test_supervisor_graph.py",
    "test_wall_door.py",
    "test_strategies.py",
    "test_cli_studies.py",
    "test_load_crowd.py",
    "test_tune.py",
    "test_leaks.py",
    "test_agreement.py",
    "test_report.py",
    "test_diff.py",
    "test_wall_queue.py",
    "test_completion_curves.py",
    "test_readme.py",
    "test_live_recording.py",
    "test_virtual_determinism.py",
    "test_schedules.py",
    "test_privacy.py",
    "test_answer_stream.py",
    "test_own_wall.py",
    "test_latency.py",
    "test_node_modes.py",
    "test_load_study.py",
    "test_coverage.py",
    "test_lint_graphs.py",
    "test_what_goes_on.py",
    "test_research_completion.py",
    "test_query_telemetry.py",
    "test_peer_sockets.py",
    "test_research_workload.py",
)
