"""Crowds of real runs in one virtual time. A run is 0.2 s of CPU, so crowds are small and looked at from all sides."""

import dataclasses
import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from docmind_lab.alternatives import AsyncCancellation, Cooperative, HardTimeout
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.load.crowd import QueryResult, run_crowd
from docmind_lab.experiments.load.load_design import Constant, LoadDesign
from docmind_lab.experiments.load.load_study import LoadStudy, rows_of_query
from docmind_lab.experiments.measurement.simulation import SimulatedSystem, frozen_garbage, simulate
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.documents import handbook

GPU = LatencyProfile.named("local_gpu")
# Alone, a query of the handbook takes some 7 s with these latencies.
TIMEOUT_S = 10.0


@pytest.fixture(scope="module")
def system() -> Iterator[SimulatedSystem]:
    made = SimulatedSystem(Settings(), corpus=handbook(), max_connections=1_000)
    yield made
    made.close()


def design(alternative, *, queries, rate_per_s, slots, **changes):
    return LoadDesign(
        arrivals=(Constant(rate_per_s),),
        alternatives=(alternative,),
        profile=dataclasses.replace(GPU, slots=slots),
        queries=queries,
        replicates=1,
        **{"decision_timeout_s": TIMEOUT_S, "warm_up_s": 0.0, **changes},
    )


def options_of(made):
    return ServiceOptions(made.profile, behaviour=made.server_behaviour, seed=made.seed)


def queries_of(made):
    (cell,) = made.cells()
    return made.queries_of(cell)


def crowd(system, made):
    door = system.door(options_of(made))
    return run_crowd(queries_of(made), system.workload, door, keep=lambda attended: attended, callers=made.callers)


def tables_of(attended: QueryResult) -> str:
    """All values of the three tables, floats to the last bit."""
    measured = attended.measured
    return repr((attended.started_at_s, measured.run, measured.calls, measured.events))


def frames(made, crowd_of):
    same = {"arrivals": "constant", "offered_per_s": 0.4, "slots": made.profile.slots, "callers": made.callers}
    window = {"replicate": 0, "window_from_s": 0.0, "window_until_s": 1.0}
    study = LoadStudy.of(rows_of_query(attended, **same, **window) for attended in crowd_of)
    return study.queries, study.servings


SLOTS = 1


@pytest.fixture(scope="module")
def overloaded(system):
    """Six queries, one every 2.5 s, at a provider that could serve one every 7 s: the crowds by letter."""
    found = {}
    for alternative in (HardTimeout(), AsyncCancellation()):
        made = design(alternative, queries=6, rate_per_s=0.4, slots=SLOTS)
        attended = crowd(system, made)
        found[letter_of(alternative.name)] = attended, *frames(made, attended)
    return found


# ---- one query, and many without a limit


@pytest.mark.parametrize("alternative", [HardTimeout(), AsyncCancellation()])
def test_a_query_alone_is_measured_as_a_run_of_its_own_to_the_last_bit(system, alternative):
    # 6 s cuts it short; so what goes on afterwards is compared too.
    made = design(alternative, queries=2, rate_per_s=0.01, slots=2, decision_timeout_s=6.0)
    first, _ = queries_of(made)
    door = system.door(options_of(made))
    (alone,) = run_crowd([first], system.workload, door, keep=lambda attended: attended)
    single = simulate(first.order, system.workload, system.door(options_of(made)))
    assert alone.started_at_s == first.scheduled_at_s == 0.0
    # As text, since NaN is not equal to itself.
    measured = alone.measured
    assert repr((measured.run, measured.calls, measured.events)) == repr((single.run, single.calls, single.events))
    assert single.run.stop_reason != ""


def test_without_a_limit_of_slots_queries_do_not_know_of_each_other(system):
    made = design(HardTimeout(), queries=3, rate_per_s=0.25, slots=None, decision_timeout_s=7.0)
    together = crowd(system, made)
    assert len({attended.measured.run.outcome for attended in together}) == 2, "some are cut and some are not"
    for attended in together:
        run = attended.measured.run
        single = simulate(attended.query.order, system.workload, system.door(options_of(made))).run
        for field in dataclasses.fields(run):
            # The instants are sums from another begin, and differ in their last digits.
            both = getattr(run, field.name), getattr(single, field.name)
            same = pytest.approx(both[1], abs=1e-9, nan_ok=True) if isinstance(both[1], float) else both[1]
            assert both[0] == same, field.name


# ---- a provider that has more to do than it can


def test_every_query_has_one_row_at_its_scheduled_instant(overloaded):
    for attended, queries, servings in overloaded.values():
        assert queries["run_id"].is_unique
        assert list(queries["query"]) == list(range(6))
        assert queries["scheduled_at_s"].tolist() == [2.5 * number for number in range(6)]
        assert queries["started_at_s"].tolist() == pytest.approx(queries["scheduled_at_s"].tolist())
        assert set(servings["run_id"]) <= set(queries["run_id"])
        counted = sum(
            call.seen_from == "server" and call.kind == "llm" for item in attended for call in item.measured.calls
        )
        assert len(servings) == counted


def test_never_more_are_served_at_once_than_there_are_slots(overloaded):
    for _, _, servings in overloaded.values():
        served = servings.dropna(subset="served_from_s")
        # Rounded, since an end and the begin that follows it are sums from different runs' begins.
        begins, ends = served["served_from_s"].round(9), served["left_at_s"].round(9)
        changes = sorted([(at_s, 1) for at_s in begins] + [(at_s, -1) for at_s in ends])
        at_once = np.cumsum([change for _, change in changes])
        assert at_once.max() == SLOTS
        assert at_once[-1] == 0


def test_what_b_abandons_keeps_its_slots_and_what_c_cancels_does_not(overloaded):
    late = {letter: unwanted_s(*tables, TIMEOUT_S) for letter, (_, *tables) in overloaded.items()}
    # Of one slot; C's cancellation is at the deadline itself.
    assert late["B"] > 10.0
    assert late["C"] == pytest.approx(0.0, abs=1e-6)


@pytest.fixture
def nothing_frozen():
    gc.unfreeze()
    yield
    gc.freeze()


def test_a_crowd_gives_the_same_tables_again_to_the_last_bit(system, overloaded, nothing_frozen):
    made = design(HardTimeout(), queries=6, rate_per_s=0.4, slots=SLOTS)
    threads = set(threading.enumerate())
    again = crowd(system, made)
    assert [tables_of(item) for item in again] == [tables_of(item) for item in overloaded["B"][0]]
    assert set(threading.enumerate()) == threads
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_what_the_caller_has_frozen_stays_out_of_collections():
    gc.freeze()
    with frozen_garbage():
        pass
    assert gc.get_freeze_count() > 0


# ---- callers


def test_a_caller_takes_the_next_query_when_it_has_its_answer_and_not_when_the_work_ends(system):
    # Nobody is answered within 2.5 s, and each run goes on for some seconds after its caller has left.
    made = design(HardTimeout(), queries=4, rate_per_s=1.0, slots=None, decision_timeout_s=2.5, callers=2)
    attended = crowd(system, made)
    runs = [item.measured.run for item in attended]
    assert all(run.returned_at_s == pytest.approx(2.5) and run.quiescent_at_s > 4.0 for run in runs)
    # 0 and 1 go at once; 2 waits until 0 has its answer at 2.5, and 3 until 1 has at 3.5.
    assert [item.started_at_s for item in attended] == pytest.approx([0.0, 1.0, 2.5, 3.5])
    assert [item.waited_for_caller_s for item in attended] == pytest.approx([0.0, 0.0, 0.5, 0.5])
    queries, _ = frames(made, attended)
    assert queries["response_s"].tolist() == pytest.approx([2.5, 2.5, 3.0, 3.0])


class Broken:
    """A workload of which every run fails."""

    name = "broken"

    def __init__(self):
        self.begun = 0

    def inputs(self, question):
        self.begun += 1
        raise RuntimeError("no such question")

    def forget(self, run_id):
        pass


@pytest.mark.parametrize("callers", [None, 1])
def test_what_a_run_raises_is_raised_and_no_further_query_begins(system, callers):
    made = design(Cooperative(), queries=2, rate_per_s=0.01, slots=None, callers=callers)
    workload = Broken()
    with pytest.raises(RuntimeError, match="no such question"):
        run_crowd(queries_of(made), workload, system.door(options_of(made)), keep=lambda _: None, callers=callers)
    assert workload.begun == 1


def unwanted_s(queries, servings, timeout_s):
    """Slot seconds spent on queries whose deadline was over."""
    due_at_s = servings["run_id"].map(queries.set_index("run_id")["scheduled_at_s"] + timeout_s)
    late = servings["left_at_s"] - np.maximum(servings["served_from_s"], due_at_s)
    return late.clip(lower=0.0).sum()
