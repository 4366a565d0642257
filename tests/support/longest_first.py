"""Files of tests that take longest, in that order, for few workers: one begun last would leave the others without work.

By the seconds of each file in `make test`, but for the first three, which take longest at full counts; a file of some
seconds need not be named.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = (
    "test_watchdog_promise.py",
    "test_calibration.py",
    "test_crash_planted.py",
    "test_crash_runs.py",
    "test_progress.py",
    "test_advice.py",
    "test_pytest_plugin.py",
    "test_reference.py",
    "test_cli.py",
    "test_sweep_interrupted.py",
    "test_interrupts.py",
    "test_cli_studies.py",
    "test_watch.py",
    "test_snapshots.py",
    "test_coordinator.py",
    "test_live_endpoints.py",
    "test_enforcement.py",
    "test_after_fork.py",
    "test_once.py",
    "test_watchdog.py",
    "test_wrap_up.py",
    "test_research_workload.py",
    "test_summary.py",
    "test_total_deadline.py",
    "test_plots.py",
    "test_client_libraries.py",
    "test_deadline_assertion.py",
    "test_programs.py",
    "test_run_settings.py",
    "test_live_recording.py",
    "test_agent_frameworks.py",
    "test_doctor_requests.py",
    "test_leaks.py",
    "test_official_clients.py",
    "test_asgi.py",
    "test_enforce.py",
    "test_agents_that_know_their_time.py",
    "test_wall_door.py",
    "test_house.py",
    "test_importers_fuzz.py",
)
