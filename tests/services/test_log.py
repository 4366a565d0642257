"""The service's own log: one row per request, by run, from any thread, bounded for requests without a run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from service_doors import tags

from docmind_lab.services import log as log_module
from docmind_lab.services.log import ServiceLog
from docmind_lab.services.plan import Plan, ServiceRequest

PLAN = Plan((), "llm")


def request(run_id: str = "") -> ServiceRequest:
    return ServiceRequest("POST", "/v1/chat/completions", tags(run_id) | {"x-docmind-attempt": "2"})


def test_rows_are_kept_apart_by_run_and_a_forgotten_run_leaves_nothing():
    log = ServiceLog()
    first, second = log.received(request("r1"), PLAN, 0.0), log.received(request("r2"), PLAN, 0.0)
    loose = log.received(request(), PLAN, 0.0)
    assert (first.run_id, first.call_id, first.attempt) == ("r1", "llm/router/1.0.1", 2)
    assert [log.rows(run_id) for run_id in ("r1", "r2", "", "r3")] == [[first], [second], [loose], []]
    log.forget("r1")
    log.forget("never seen")
    assert [log.rows(run_id) for run_id in ("r1", "r2", "")] == [[], [second], [loose]]


def test_rows_without_a_run_are_bounded_and_the_newest_stay(monkeypatch):
    monkeypatch.setattr(log_module, "_UNCLAIMED_ROWS", 5)
    log = ServiceLog()
    for instant in range(12):
        log.received(request(), PLAN, float(instant))
        log.received(request("r1"), PLAN, float(instant))
    assert [row.received_at for row in log.rows("")] == [7.0, 8.0, 9.0, 10.0, 11.0]
    assert len(log.rows("r1")) == 12


def test_no_row_is_lost_when_many_threads_write_and_read():
    log, workers, each = ServiceLog(), 8, 200
    together = threading.Barrier(workers)

    def work(worker: int) -> None:
        together.wait()
        for number in range(each):
            log.received(request(f"r{number % 3}"), PLAN, 0.0).outcome = "ok"
            log.open_rows(f"r{worker % 3}")

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    assert sum(len(log.rows(f"r{number}")) for number in range(3)) == workers * each
