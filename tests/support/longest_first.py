"""Files of tests that take longest, in that order, for few workers: one begun last would leave the others without work.

By the seconds of each file in `make test`, but for the first, which takes longest at full counts; a file of some
seconds need not be named.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = (
    "test_crash_planted.py",
    "test_cli.py",
    "test_live_endpoints.py",
    "test_coordinator.py",
    "test_enforcement.py",
    "test_after_fork.py",
    "test_research_workload.py",
    "test_total_deadline.py",
    "test_plots.py",
    "test_sweep_interrupted.py",
    "test_client_libraries.py",
    "test_deadline_assertion.py",
    "test_programs.py",
    "test_asgi.py",
    "test_enforce.py",
    "test_live_recording.py",
    "test_agent_frameworks.py",
    "test_run_settings.py",
    "test_official_clients.py",
    "test_agents_that_know_their_time.py",
    "test_wall_door.py",
    "test_house.py",
    "test_importers_fuzz.py",
    "test_hooks.py",
    "test_crash_savers.py",
    "test_doctor_requests.py",
    "test_virtual_determinism.py",
    "test_supervisor_graph.py",
    "test_wall_queue.py",
    "test_replay_without_texts.py",
)
