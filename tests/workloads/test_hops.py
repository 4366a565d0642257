"""A caller of a tree of services of which none, some or all hold to the deadline on the wire, on both clocks."""

from __future__ import annotations

import contextlib
import itertools
import json
import pickle
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest
from flat_compare import compare_by

import docmind_lab as dl
from docmind_lab.alternatives import ALTERNATIVES, Alternative, AsyncCancellation, Cooperative, Hybrid
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.lateness import RETURN_SLACK_S
from docmind_lab.core.randomness import DrawKey
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch.cells import without_state
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.wall import wall_laboratory
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.network import HttpClients
from docmind_lab.services.hosted_behaviour import HopBehaviour, calls_below
from docmind_lab.services.log import RequestRow
from docmind_lab.services.server import ServiceAddresses, ServiceOptions
from docmind_lab.services.virtual_door import PORT
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.quantiles import QuantileTable
from docmind_lab.systems.hops.hops_workload import KIND
from docmind_lab.systems.hops.processes import APART_S, HopServices
from docmind_lab.virtual_time import VirtualClock

# Of its runs at 10 s about half are late, by 8 s on average.
PROFILE = LatencyProfile.named("heavy_tail/3")
TIMEOUT_S = 10.0
RUNS = 8
PROPAGATING = (Cooperative(), AsyncCancellation(propagate=True), Hybrid())
# Instants are sums of many durations.
ROUNDING_S = 1e-6
KNOWN: dict[str, list[MeasuredRun]] = {}
"""Runs that were measured before; they would be the same again."""


def called(value: Any) -> str:
    return getattr(value, "name", str(value))


@pytest.fixture(scope="module")
def system() -> Iterator[SimulatedSystem]:
    made = SimulatedSystem(Settings(), kind="hops")
    yield made
    made.close()


def orders_of(alternative: Alternative, adoption: float, timeout_s: float, runs: int, **others: Any) -> list[RunOrder]:
    comparison = Comparison(
        decision_timeout_s=timeout_s,
        runs=runs,
        alternatives=(alternative,),
        profile=PROFILE,
        workload="hops",
        adoption=adoption,
        **others,
    )
    return comparison.orders_of(0, "hops")


def runs_of(
    system: SimulatedSystem,
    alternative: Alternative,
    adoption: float,
    *,
    behaviour: ServerBehaviour = GOES_ON,
    timeout_s: float = TIMEOUT_S,
    runs: int = RUNS,
    mode: Any = "own",
) -> list[MeasuredRun]:
    key = repr((alternative, adoption, behaviour, timeout_s, runs, mode))
    if key not in KNOWN:
        options = ServiceOptions(PROFILE, adoption=adoption, behaviour=behaviour)
        orders = orders_of(alternative, adoption, timeout_s, runs, server_behaviour=behaviour)
        KNOWN[key] = [system.measure(order, options, node_mode=mode) for order in orders]
    return KNOWN[key]


def late_seconds(runs: list[MeasuredRun]) -> float:
    return sum(measured.run.busy_after_deadline_s for measured in runs)


def server_spans(measured: MeasuredRun) -> dict[tuple[str, str], tuple[float, float]]:
    """Role and step of each hop → when it was asked, and when its work was over."""
    rows = [call for call in measured.calls if call.seen_from == "server"]
    return {(row.role, row.step): (row.started_at_s, row.ended_at_s) for row in rows}


# ---- a run


@pytest.mark.parametrize("kind", ALTERNATIVES.values(), ids=list(ALTERNATIVES))
def test_every_alternative_has_the_answer_of_all_seven_services_with_time_enough(
    kind: type[Any], system: SimulatedSystem
) -> None:
    (measured,) = runs_of(system, kind(), 0.5, timeout_s=100.0, runs=1)
    run = measured.run
    assert (run.outcome, run.stop_reason, run.documents_count, run.source_recall) == ("answered", "", 7, 1.0)
    assert run.recall_at_deadline == 1.0
    assert (run.retries, run.llm_calls, run.threads_left) == ("none", 0, 0)
    spans = server_spans(measured)
    assert sorted(role for role, _ in spans) == ["hop_1", "hop_2", "hop_2", *["hop_3"] * 4]
    # Each is asked when the one above has done its own work, and is over before it.
    for (role, step), (_, ended_at_s) in spans.items():
        for below in calls_below(role, step):
            assert spans[below][1] <= ended_at_s
    assert measured.run.busy_after_deadline_s == 0.0


@pytest.mark.parametrize("mode", ["own", "sync", "blocking"])
def test_nodes_of_every_mode_have_the_same_answer(mode: str, system: SimulatedSystem) -> None:
    (measured,) = runs_of(system, AsyncCancellation(propagate=True), 1.0, timeout_s=100.0, runs=1, mode=mode)
    assert (measured.run.outcome, measured.run.documents_count) == ("answered", 7)


def test_a_run_that_its_deadline_cut_goes_from_a_worker_process_to_its_study(system: SimulatedSystem) -> None:
    cut = [measured for measured in runs_of(system, Cooperative(), 0.5) if measured.outcome.error is not None]
    assert cut
    for measured in map(without_state, cut):
        # By its text: NaN is equal to nothing.
        assert repr(pickle.loads(pickle.dumps(measured))) == repr(measured)


# ---- adoption


@pytest.mark.parametrize("alternative", PROPAGATING, ids=called)
def test_servers_work_at_most_5_percent_as_long_after_the_deadline_with_full_adoption_as_with_none(
    alternative: Alternative, system: SimulatedSystem
) -> None:
    none, half, full = (runs_of(system, alternative, adoption) for adoption in (0.0, 0.5, 1.0))
    for measured in (*none, *half, *full):
        assert measured.run.caller_overrun_s <= RETURN_SLACK_S + ROUNDING_S
    assert late_seconds(none) > 10.0
    assert 0.0 < late_seconds(half) < late_seconds(none)
    assert late_seconds(full) <= 0.05 * late_seconds(none)
    assert sum(measured.run.calls_after_deadline for measured in none) > 0
    assert sum(measured.run.calls_after_deadline for measured in full) == 0


def test_a_caller_that_only_cancels_sends_no_deadline_so_adoption_changes_nothing(system: SimulatedSystem) -> None:
    none, full = (runs_of(system, AsyncCancellation(), adoption) for adoption in (0.0, 1.0))
    assert late_seconds(none) == late_seconds(full) > 10.0


def test_hops_that_stop_when_their_client_leaves_need_no_deadline_on_the_wire(system: SimulatedSystem) -> None:
    for alternative in (Cooperative(), AsyncCancellation()):
        assert late_seconds(runs_of(system, alternative, 0.0, behaviour=STOPS)) == 0.0


def test_a_hop_works_past_the_deadline_exactly_if_it_or_one_above_it_has_not_adopted_it(
    system: SimulatedSystem,
) -> None:
    behaviour, checked = HopBehaviour(PROFILE, 0.5), 0
    for measured in runs_of(system, Cooperative(), 0.5):
        seed, spans = measured.run.seed, server_spans(measured)
        told = {("hop_1", "0.1")}
        for role, step in sorted(spans, key=lambda hop: len(hop[1])):
            holds = (role, step) in told and behaviour.has_adopted(DrawKey(seed, role, step))
            if holds:
                told |= set(calls_below(role, step))
                assert spans[role, step][1] <= TIMEOUT_S
                checked += 1
            elif spans[role, step][1] > TIMEOUT_S:
                checked += 1
    assert checked > RUNS


def test_with_more_adoption_the_same_hops_have_adopted_and_others_besides() -> None:
    keys = [DrawKey(seed, role, step) for seed in range(50) for role, step in tree()]
    shares = (0.0, 0.25, 0.5, 1.0)
    adopted = [{key for key in keys if HopBehaviour(PROFILE, share).has_adopted(key)} for share in shares]
    assert all(fewer < more for fewer, more in itertools.pairwise(adopted))
    assert (adopted[0], adopted[-1]) == (set(), set(keys))
    assert len(adopted[2]) / len(keys) == pytest.approx(0.5, abs=0.08)  # three standard errors of 350 draws


def test_every_alternative_and_every_adoption_meets_the_same_work(system: SimulatedSystem) -> None:
    met = set()
    for alternative, adoption in itertools.product((Cooperative(), AsyncCancellation()), (0.0, 1.0)):
        (measured,) = runs_of(system, alternative, adoption, timeout_s=100.0, runs=1)
        met.add(tuple(sorted(server_spans(measured).items())))
    assert len(met) == 1


def tree() -> list[tuple[str, str]]:
    hops = [("hop_1", "0.1")]
    for role, step in hops:
        hops += calls_below(role, step)
    return hops


# ---- one hop


def asked(adoption: float, headers: dict[str, str]) -> tuple[int, float]:
    """Ask hop 3 in virtual time; the status, and the seconds until it came."""
    one = QuantileTable.constant(1.0)
    profile = LatencyProfile(
        "even", "One second for each call.", "An assumption.", one, QuantileTable.constant(0.0), one
    )
    system = SimulatedSystem(Settings(), kind="hops")
    clock = VirtualClock(on_entry=[system.door(ServiceOptions(profile, adoption=adoption)).open])
    http = HttpClients()

    def ask() -> tuple[int, float]:
        begun_at = clock.now()
        response = http.openai.post(f"{ServiceAddresses.at_port(PORT).hops_url}hop_3", headers=headers)
        return response.status_code, clock.now() - begun_at

    with contextlib.closing(system), contextlib.closing(http):
        return clock.run(ask)


@pytest.mark.parametrize(
    ("adoption", "left_ms", "status", "seconds"),
    [
        (1.0, None, 200, 1.0),  # none was sent
        (1.0, "2000", 200, 1.0),
        (1.0, "400", 504, 0.4),  # it stops in time
        (1.0, "3", 504, 0.0),  # it refuses at once what cannot be met
        (1.0, "0", 504, 0.0),
        (1.0, "soon", 200, 1.0),  # what cannot be read counts as absent
        (0.0, "3", 200, 1.0),  # it has not adopted it
    ],
)
def test_a_hop_that_has_adopted_the_deadline_refuses_what_it_cannot_meet_and_stops_in_time(
    adoption: float, left_ms: str | None, status: int, seconds: float
) -> None:
    headers = {} if left_ms is None else {"x-envoy-expected-rq-timeout-ms": left_ms}
    assert asked(adoption, headers) == (status, pytest.approx(seconds))


# ---- over sockets


@pytest.mark.full
@pytest.mark.wall
def test_real_processes_an_hour_apart_stop_in_time_and_their_logs_join_with_the_clients() -> None:
    comparison = Comparison(
        decision_timeout_s=0.6,
        runs=3,
        # The same processes under both: what sends no deadline shows what they do without one.
        alternatives=(Cooperative(), AsyncCancellation()),
        profile=LatencyProfile.named("heavy_tail/30"),
        clock="wall",
        workload="hops",
        adoption=1.0,
        server_behaviour=GOES_ON,
    )
    with wall_laboratory(comparison, Settings()) as laboratory:
        for url, level in zip((laboratory.log.log_url, *laboratory.log.others), (1, 2, 3), strict=True):
            response = httpx.get(url, params={"run_id": "nobody"}, trust_env=False)
            here = parsedate_to_datetime(response.headers["date"]).timestamp() - time.time()
            # Whole seconds, and a busy machine's delay.
            assert here == pytest.approx(APART_S * level, abs=5.0)
        measured = list(laboratory.measure_all(comparison.orders()))
    told = [run for run in measured if run.run.alternative == "cooperative"]
    untold = [run for run in measured if run.run.alternative == "async_cancellation"]
    assert {run.run.outcome for run in told} == {"timed_out"}
    for run in measured:
        spans = server_spans(run)
        # By the machine's own clock: no hop was asked before the run began, nor before the one above it.
        assert {role for role, _ in spans} >= {"hop_1", "hop_2"}
        for role, step in spans:
            assert 0.0 <= spans[role, step][0] <= run.run.horizon_s
            for below in set(calls_below(role, step)) & set(spans):
                assert spans[role, step][0] < spans[below][0]
    assert late_seconds(untold) > 0.5
    # A hop that stops is some milliseconds late on a busy machine, and up to seven add up in each run.
    assert late_seconds(told) <= 0.05 * late_seconds(untold) + 0.1


def test_the_options_of_a_process_are_read_back_equal() -> None:
    services = HopServices(PROFILE, adoption=0.5, seed=3, below_url="http://127.0.0.1:9/hops/", clock_ahead_s=3600.0)
    assert HopServices.from_json(services.as_json()) == services
    with pytest.raises(ConfigurationError, match="service options"):
        HopServices.from_json('{"below": ""}')


def test_a_row_is_moved_with_all_its_instants() -> None:
    row = RequestRow(
        "peer", "run", "call", 1, "hop_1", "0.1", 3605.0, ended_at=3607.0, token_spans=[(3605.0, 3606.0, 2)]
    )
    moved = row.moved(-3600.0)
    assert (moved.received_at, moved.ended_at, moved.first_byte_at) == (5.0, 7.0, None)
    assert moved.token_spans == [(5.0, 6.0, 2)]
    assert moved.moved(3600.0) == row


# ---- what can be asked for


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adoption": 1.5, "system": "hops"}, "adoption must be a share of the hops from 0 to 1, not 1.5"),
        ({"adoption": True, "system": "hops"}, "adoption must be a share"),
        ({"system": "hops", "model_variation": 0.5}, "the model of workload hops does not vary"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        compare_by(**options, runs=1, alternatives="A")


def test_adoption_is_a_factor_and_leaves_out_workloads_without_hops() -> None:
    factors = {"alternative": ["A", "C"], "adoption": [0, 0.5, 1], "workload": ["hops", "supervisor"]}
    plan = StudyDesign.of({"repeats": 2, "factors": factors}).plan
    found = [(each.workload, each.adoption) for each in plan.combinations]
    assert sorted(set(found)) == [("hops", 0.0), ("hops", 0.5), ("hops", 1.0), ("supervisor", 0.0)]
    assert len(found) == 8
    assert plan.left_out[0] == "supervisor with adoption=0.5: it calls no services that could adopt a deadline"
    with pytest.raises(ConfigurationError, match=r"factors\.adoption: adoption must be a share"):
        StudyDesign.of({"factors": {"workload": "hops", "adoption": 2}})


def test_a_study_of_adoption_tells_its_conditions_apart_and_other_studies_keep_their_ids() -> None:
    assert "adoption" not in json.dumps(StudyDesign.of({"repeats": 1}).to_dict())
    assert "adoption" not in Comparison(runs=1).design()
    study = dl.compare(dl.hops(adoption=0.5), alternatives="A", runs=2)
    assert set(study.runs["adoption"]) == {0.5}
    assert study.manifest["design"]["adoption"] == 0.5
    assert set(study.runs["workload"].astype("str")) == {KIND.name}
