"""Files of tests that take longest, in that order, for few workers: one begun last would leave the others without work.

By the seconds of each file in `make test`; a file of some seconds need not be named.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = (
    "test_cli.py",
    "test_probe_server.py",
    "test_coordinator.py",
    "test_total_deadline.py",
    "test_enforcement.py",
    "test_lint_requests.py",
    "test_programs.py",
    "test_not_simulated.py",
    "test_enforce.py",
    "test_asgi.py",
    "test_tune.py",
    "test_after_fork.py",
    "test_faults_on_the_wire.py",
    "test_supervisor_graph.py",
    "test_wall_queue.py",
    "test_plots.py",
    "test_live_endpoints.py",
    "test_cli_studies.py",
    "test_load_crowd.py",
    "test_run_settings.py",
    "test_server_behaviour.py",
    "test_wall_door.py",
    "test_live_recording.py",
    "test_other_clients.py",
    "test_leaks.py",
    "test_agents_that_know_their_time.py",
    "test_lint_mutations.py",
    "test_hooks.py",
    "test_real_waits.py",
    "test_official_clients.py",
    "test_fallback.py",
    "test_watch.py",
    "test_mistakes_of_commands.py",
    "test_agent_callables.py",
    "test_virtual_measurement.py",
    "test_sweep_interrupted.py",
    "test_importers_fuzz.py",
    "test_privacy.py",
    "test_crash_savers.py",
    "test_house.py",
)
