"""`crash_test`, `cut_at` and the command: what is tried, what is said, how it is repeated, and when it stops."""

from __future__ import annotations

import datetime
import gc
import json
import operator
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

import aiohttp
import pandas as pd
import planted
import pytest
from commands_here import said
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from often import often
from own_runs import graph_of

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError, GraphError
from docmind_lab.experiments.assertions import cut_at
from docmind_lab.experiments.batch.workers import kept_warm
from docmind_lab.experiments.crash_test import CrashReport, Violation, crash_test
from docmind_lab.experiments.crash_test.cut_points import CutPoint, in_turn
from docmind_lab.experiments.crash_test.held_locks import held_locks
from docmind_lab.experiments.examination import Trial
from docmind_lab.virtual_time import VirtualClock

GRAPHS = Path(__file__).parents[1] / "support"
CHARGE = "planted.py:double_charge"
LOST = "planted.py:lost_update"


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


@pytest.fixture(autouse=True)
def _beside_the_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GRAPHS)


def steps(*names: str) -> Any:
    def step(name: str) -> Any:
        def node(state: State) -> dict[str, Any]:
            time.sleep(0.1)
            return {"said": [name]}

        return node

    return graph_of(schema=State, **{name: step(name) for name in names})


GIVEN: list[Any] = [{"said": []}]


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_lock_of_either_kind_that_a_run_has_made_is_seen_while_it_is_held(kind: str) -> None:
    def main() -> tuple[list[str], list[str]]:
        lock = getattr(threading, kind)()

        def node(state: State) -> dict[str, Any]:
            return {"said": [repr(lock)]}

        graph = graph_of(node, schema=State)
        free = list(held_locks(graph))
        with lock:
            return free, list(held_locks(graph))

    assert VirtualClock().run(main) == ([], ["lock"])


def test_a_run_that_is_killed_in_a_request_of_aiohttp_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def ask(state: State) -> dict[str, Any]:
        url = "https://api.tavily.com/search"
        async with aiohttp.ClientSession() as session, session.post(url, json={"query": "q"}) as answer:
            return {"said": [str(await answer.json())]}

    report = crash_test(dl.graph(graph_of(schema=State, ask=ask), GIVEN), alternatives="kill", runs=6)
    gc.collect()
    assert (report.trials > 0, [record.getMessage() for record in caplog.records]) == (True, [])


def test_every_cut_point_is_tried_before_at_and_after_its_instant() -> None:
    report = crash_test(dl.graph(steps("only"), GIVEN), alternatives="A")
    (coverage,) = report.coverage
    assert report.judged["resume"] == report.trials
    assert "No findings." in str(report)
    assert coverage.found == coverage.tried == report.trials
    assert {"node begins", "node ends", "checkpoint begins", "checkpoint ends", "pending write begins"} <= set(
        coverage.kinds
    )
    assert coverage.skipped == ""


def test_each_chunk_of_a_stream_is_a_cut_point() -> None:
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0, streaming=True)

    def node(state: State) -> dict[str, Any]:
        return {"said": [model.invoke("Which words are there?").text]}

    (coverage,) = crash_test(dl.graph(graph_of(node, schema=State), GIVEN), alternatives="A", runs=6).coverage
    assert coverage.kinds["chunk"][0] > coverage.kinds["first byte"][0]


def test_with_a_limit_each_kind_is_tried_before_any_is_tried_twice_and_what_was_skipped_is_said() -> None:
    points = [CutPoint(float(number), ("chunk",), "at") for number in range(1, 9)]
    points += [CutPoint(9.0, ("tool begins",), "at"), CutPoint(10.0, ("wait ends",), "before")]
    chosen = in_turn(points, 3)
    assert {kind for point in chosen for kind in point.kinds} == {"chunk", "tool begins", "wait ends"}
    assert in_turn(points, None) == points
    report = crash_test(dl.graph(steps("a", "b"), GIVEN), alternatives="A,D,kill", runs=2)
    assert report.trials == 2, "at the most, though there are three alternatives"
    assert (report.judged["conversation"], report.judged["resume"]) == (0, 2)
    assert all("skipped for the limit of runs" in each.skipped for each in report.coverage)


def lost_update(workers: int) -> CrashReport:
    return crash_test(dl.graph(f"{LOST}.broken", [{"topic": "tides", "notes": []}]), runs=24, workers=workers)


@pytest.mark.parametrize("workers", often((1, 2), 1))
def test_the_same_test_finds_the_same_every_time_in_worker_processes_too(workers: int) -> None:
    assert lost_update(workers).finding().as_json() == lost_update(1).finding().as_json()


def repeat(report: CrashReport) -> None:
    """Run the test of the one finding of a report."""
    names: dict[str, Any] = {}
    exec(compile(report.pytest_functions(), "repeated", "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    (mark,) = test.pytestmark
    test(**dict(zip(mark.args[0], mark.args[1][0], strict=True)))


def test_a_finding_has_its_smallest_input_its_timeline_and_a_test_that_repeats_it() -> None:
    given = [{"topic": topic, "notes": []} for topic in ("the tides of the western harbour", "the tides")]
    report = crash_test(dl.graph(f"{LOST}.broken", given), alternatives="D", runs=32, workers=1)
    (finding,) = report.findings
    assert finding.graph_input["topic"] == "the tides"
    assert any("the deadline" in line for line in finding.timeline)
    with pytest.raises(AssertionError, match="the resumed run reaches another answer"):
        repeat(report)


@pytest.mark.parametrize("is_general", often([False, True], False), ids=["of the input", "of all inputs"])
def test_a_run_and_the_test_of_a_finding_go_on_with_the_answers_that_are_left(is_general: bool) -> None:
    answers, given = ["17", "ten"], {"order": "17"}
    inputs = [given] if is_general else [{"input": given, "resume": answers}]
    system = dl.graph("planted.py:charge_between_answers", inputs, resume=answers if is_general else ())
    world = dl.World(endpoints="crash_services.toml")
    report = crash_test(system, alternatives="A,kill", world=world, workers=1)
    assert [each.what for each in report.findings] == ["POST pay.example.com/charges is done twice"]
    assert report.findings[0].alternatives == ("A", "kill")
    with pytest.raises(AssertionError, match="charges is done twice"):
        repeat(report)


def killed(system: Any, **options: Any) -> CrashReport:
    return crash_test(system, alternatives="kill", world=dl.World(endpoints="crash_services.toml"), **options)


def test_an_effect_that_no_undisturbed_run_has_is_no_repeated_one() -> None:
    report = killed(dl.graph("planted.py:charge_for_a_repeat", [{"order": "17"}]), workers=1)
    (finding,) = [each for each in report.findings if each.invariant == "effects"]
    assert finding.what.endswith(" is done, and never in an undisturbed run")
    assert (finding.evidence, finding.remedy) == ("1 time; an undisturbed run does it 0 times", "")


def test_a_process_that_was_killed_does_nothing_more() -> None:
    for finding in killed(dl.graph("planted.py:charge_side_by_side", [{"order": "17"}]), workers=1).findings:
        last = next(number for number, line in enumerate(finding.timeline) if "the process is killed" in line)
        assert all("(resumed)" in line or "…" in line for line in finding.timeline[last + 1 :])


def test_each_finding_of_a_long_address_has_a_test_of_its_own_name() -> None:
    what, trial = f"POST api.example.com/{'accounts/' * 8}charges is done", Trial("kill", 0.1, "001")
    found = [Violation("effects", f"{what} {end}", ("kill",), 1, trial, {}, "", ()) for end in ("twice", "3 times")]
    report = CrashReport("a.py:graph", tuple(found), (), (), {}, 2)
    assert len(set(re.findall(r"def test_\w+", report.pytest_functions()))) == 2


def test_a_test_that_needs_objects_of_the_program_names_them_in_place_of_their_text() -> None:
    def pay(state: Any) -> dict[str, Any]:
        return {"receipt": planted.paid("17", {})}

    given = {"order": datetime.date(2026, 11, 27)}
    system = dl.graph(graph_of(schema=planted.Order, pay=pay), [given], config={"configurable": given})
    report = killed(system, checkpointer=InMemorySaver)
    (finding,) = [each for each in report.findings if each.invariant == "effects"]
    written, call = finding.pytest_function(report.graph, 7, report.options, report.objects).splitlines()
    assert written == "# Objects of your program cannot be written down: graph, checkpointer, order, config. With them:"
    assert re.match(r"# cut_at\(graph, graph_input, 'kill', .* checkpointer=checkpointer, config=config\)", call)
    assert "def test" not in report.pytest_functions()


def test_a_model_within_a_node_that_is_told_of_a_call_that_was_cut_may_answer_otherwise() -> None:
    system = dl.graph("planted.py:agent_in_a_node", ["How deep is the harbour?"])
    report = crash_test(system, alternatives="kill", runs=24, workers=1)
    assert ([each.what for each in report.findings], report.judged["resume"]) == ([], report.trials)


def test_the_test_of_a_finding_calls_an_agent_as_it_was_called() -> None:
    system = dl.agent("planted.py:charging_agent", [{"question": "17", "currency": "EUR"}])
    report = killed(system, workers=1)
    with pytest.raises(AssertionError, match="charges is done twice"):
        repeat(report)


def test_cut_at_repeats_one_cut_and_passes_on_a_corrected_graph() -> None:
    services, given = "crash_services.toml", {"order": "17"}
    with pytest.raises(AssertionError, match=r"charges is done twice[\s\S]*the deadline"):
        cut_at(f"{CHARGE}.broken", given, "A", 0.2, endpoints=services)
    observation = cut_at(f"{CHARGE}.mended", given, "A", 0.2, endpoints=services)
    assert [effect.key for effect in observation.effects] == ["order-17", "order-17"]


def test_a_hard_timeout_is_told_of_what_it_leaves_and_has_no_finding_for_it() -> None:
    report = crash_test(dl.graph(steps("a", "b"), GIVEN), alternatives="B", runs=20)
    assert report.holds
    assert {left.invariant for left in report.left} >= {"begins", "checkpoint"}


def test_a_checkpointer_that_cannot_be_read_is_found() -> None:
    class Unreadable(InMemorySaver):
        def get_tuple(self, config: Any) -> Any:
            if any(checkpoints for checkpoints in self.storage.values()):
                raise ValueError("unknown version")
            return super().get_tuple(config)

    report = crash_test(dl.graph(steps("a", "b"), GIVEN), alternatives="D", runs=9, checkpointer=Unreadable)
    assert "the thread cannot be read" in {finding.what for finding in report.findings}


def test_an_answer_that_depends_on_time_is_not_compared() -> None:
    def node(state: State) -> dict[str, Any]:
        time.sleep(0.1)
        return {"said": [str(time.time())]}

    report = crash_test(dl.graph(graph_of(node, schema=State), GIVEN), alternatives="A,kill", runs=12)
    assert report.holds
    assert any("depends on time or chance: said" in note for note in report.notes)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"runs": 0}, "runs must be"),
        ({"durability": "never"}, "durability must be one of"),
        ({"alternatives": ""}, "alternatives: name at least one"),
        ({"alternatives": "Z"}, "unknown alternative"),
        ({"workers": 2}, "a live graph or checkpointer is in this process only"),
        ({"checkpointer": dict}, "not a checkpointer of LangGraph"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        crash_test(dl.graph(steps("only"), GIVEN), **options)


MAKERS = """
import functools
from typing import TypedDict
from langgraph.graph import START, StateGraph

made = []


class State(TypedDict, total=False):
    said: str


class Maker:
    def make(self, times=1):
        made.append(times)
        return StateGraph(State).add_node("only", lambda state: {"said": "a"}).add_edge(START, "only").compile()

    __call__ = make


method, partial, instance = Maker().make, functools.partial(Maker().make, times=2), Maker()
"""


@pytest.mark.parametrize("name", ["method", "partial", "instance"])
def test_whatever_makes_the_graph_is_called_for_each_trial(name: str, tmp_path: Path) -> None:
    (tmp_path / f"makers_by_{name}.py").write_text(MAKERS)
    system = dl.graph(f"{tmp_path}/makers_by_{name}.py:{name}", [{"said": ""}])
    report = crash_test(system, alternatives="A", runs=3, workers=1)
    assert len(sys.modules[f"makers_by_{name}"].made) > report.trials


def test_a_graph_that_fails_without_a_deadline_is_refused() -> None:
    def fail(state: State) -> dict[str, Any]:
        raise ValueError("no harbour")

    with pytest.raises(GraphError, match=r"without a deadline: the graph ends failed .*no harbour"):
        crash_test(dl.graph(graph_of(fail, schema=State), GIVEN))


def test_the_command_prints_findings_in_80_columns_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("docmind_lab.views.cli.console._WIDTH", 80)
    inputs, tests = tmp_path / "inputs.jsonl", tmp_path / "test_found.py"
    inputs.write_text('{"order": "17"}\n')
    words = ["crash-test", "--inputs", str(inputs), "--endpoints", "crash_services.toml", "--alternatives", "A"]
    words += ["--runs", "9", "--workers", "1"]
    code, shown, _ = said(capsys, *words, "--graph", f"{CHARGE}.broken", "--tests", tests)
    assert code == 1
    assert "POST pay.example.com/charges is done twice" in shown
    assert "cut_at(" in shown
    # The code is to be pasted, so its lines stay whole.
    test = shown[shown.index("import pytest") : shown.index("\nbegins ")]
    assert max(map(len, shown.replace(test, "").splitlines())) <= 80
    compile(test, "pasted", "exec")
    assert "def test_effects" in tests.read_text()
    code, shown, _ = said(capsys, *words, "--graph", f"{CHARGE}.mended", "--json")
    assert (code, json.loads(shown)["holds"]) == (0, True)
    assert said(capsys, "crash-test", "--graph", f"{CHARGE}.mended")[0] == 2


def test_the_figure_has_each_cut_at_its_place_with_its_worst_verdict() -> None:
    rows = [
        ("1", "A", 0.5, "begins", "holds", ""),
        ("1", "A", 0.5, "effects", "broken", "twice"),
        ("1", "A", 4.0, "begins", "left", "a thread"),
        ("1", "kill", 0.5, "begins", "not judged", ""),
        ("1", "kill", 0.5, "effects", "holds", ""),
    ]
    verdicts = pd.DataFrame(rows, columns=["input_id", "alternative", "at_s", "invariant", "status", "what"])
    assert dl.plots.cut_frame(verdicts)["status"].tolist() == ["broken", "left", "holds"]
    axes = dl.plots.cut_points(verdicts)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["deadline, A", "kill"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.500", "4.000"]


def test_the_command_gives_a_graph_its_context_configuration_and_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "inputs.jsonl").write_text('{"ship": "Meridian"}')
    words = ["--graph", "given_graph.py:make_asking", "--inputs", str(tmp_path / "inputs.jsonl"), "--alternatives", "A"]
    given = ["--context", '{"captain": "Ada"}', "--config", '{"configurable": {"berth": "7"}}', "--resume", "yes"]
    code, shown, _ = said(capsys, "crash-test", *words, *given, "--runs", "6", "--workers", "1", "--json")
    report = json.loads(shown)
    assert (code, report["trials"]) == (0, 6)
    assert report["judged"]["resume"] == 6


# ---- effects of endpoints


def services_in(folder: Path, row: str) -> Path:
    """Write a file with one simulated endpoint."""
    path = folder / "services.toml"
    path.write_text(f'[[endpoint]]\n{row}\njson = {{ status = "paid", report = "well" }}\n')
    return path


@pytest.mark.parametrize(("row", "effects"), [("", True), ("effect = false\n", False)])
def test_the_key_of_an_endpoint_says_whether_it_changes_something(row: str, effects: bool, tmp_path: Path) -> None:
    services = services_in(tmp_path, f'host = "pay.example.com"\npath = "/charges"\nmethod = "POST"\n{row}')
    system, world = dl.graph(f"{CHARGE}.broken", [{"order": "17"}]), dl.World(endpoints=services)
    report = crash_test(system, world=world, runs=6, workers=1)
    assert any("No side effect was seen" in note for note in report.notes) is not effects


def test_a_get_that_is_declared_to_change_something_is_an_effect(tmp_path: Path) -> None:
    services = services_in(tmp_path, 'host = "slow.example.com"\npath = "/report"\neffect = true\nlatency = 1.0\n')
    system, world = dl.graph("planted.py:file_left.mended", [{"about": "x"}]), dl.World(endpoints=services)
    report = crash_test(system, world=world, alternatives="E,kill", runs=20, workers=1)
    assert "GET slow.example.com/report is done twice" in {finding.what for finding in report.findings}


@pytest.mark.full
def test_worker_processes_have_one_order_of_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with kept_warm(1) as workers:
        assert workers.submit(os.getenv, "PYTHONHASHSEED").result() == "0"
