"""Systems and worlds: reprs that can be pasted, right names for wrong ones, options of a command line, study files."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS
from docmind_lab.experiments.comparison.comparison_run import resolve
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.world_options import nouns_of
from docmind_lab.services.server import ServiceConditions
from docmind_lab.systems import system_catalogue
from docmind_lab.systems.system_catalogue import SYSTEMS, system_of_kind
from docmind_lab.views.cli.app import app
from docmind_lab.views.cli.fields_as_options import PARAMETERS
from docmind_lab.views.telemetry import Telemetry

NOUNS = [
    dl.graph("my_app:graph", ["a"], context={"user": "ada"}, enforced=True),
    dl.agent("my_app:agent", ["a"], budget=dl.Budget(calls=3)),
    dl.command(["node", "agent.mjs"], "questions.txt"),
    dl.docmind("papers", "questions.jsonl", router_injection=False, retries=0),
    dl.research(),
    dl.staged(retries=1),
    dl.peers(documents="papers"),
    dl.hops(adoption=0.5),
    dl.workload(kind="mine:KIND", retries=2),
    dl.World(latencies={"*": "typical", "judge": "fast"}, faults=["hang", "stall=5"], server="goes-on"),
    dl.World(clock="wall", endpoints="services.toml", model=dl.ScriptedModel(0.2, under_pressure="panics:0.5")),
    dl.Live(record="monday", record_text=True, max_requests=60, latencies="fast"),
    dl.Replay("monday"),
]
CALLS = (dl.compare, dl.sweep, dl.recommend, dl.tune, dl.doctor, dl.crash_test)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: type(noun).__name__)
def test_a_noun_shows_itself_as_the_call_that_makes_it(noun: Any) -> None:
    assert eval(repr(noun), {"dl": dl, "Budget": dl.Budget}) == noun
    assert repr(noun) == repr(dataclasses.replace(noun))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_a_call_takes_at_most_twelve_arguments_and_the_same_nouns(call: Callable[..., Any]) -> None:
    names = list(inspect.signature(call).parameters)
    assert len(names) <= 12
    assert names[0] == "system"
    assert "world" in names
    assert "decision_timeout_s" in names or call in (dl.sweep, dl.recommend, dl.crash_test)


@pytest.mark.parametrize(
    ("call", "keywords", "message"),
    [
        (dl.compare, {"profile": "fast"}, "dl.compare has no argument 'profile': now World(latencies=…)"),
        (dl.compare, {"fault": "hang"}, "now World(faults=…)"),
        (dl.compare, {"timeout": 3}, "now decision_timeout_s"),
        (dl.compare, {"alternative": "A"}, "now alternatives"),
        (dl.compare, {"graph": "a:b"}, "now dl.graph(graph, inputs)"),
        (dl.compare, {"workload": "hops"}, "now a system: dl.docmind(), dl.research()"),
        (dl.compare, {"replay": "monday"}, "now world=Replay(folder)"),
        (dl.compare, {"decision_timout_s": 3}, "did you mean decision_timeout_s?"),
        (dl.compare, {"profle": "fast"}, "did you mean profile? It is now World(latencies=…)"),
        (dl.World, {"profile": "fast"}, "dl.World has no argument 'profile': now World(latencies=…)"),
        (dl.docmind, {"docments": "papers"}, "dl.docmind has no argument 'docments': did you mean documents?"),
        (dl.staged, {"zzz": 1}, "it takes budget, retries"),
        (dl.doctor, {"system": "a:b", "context": {}}, "now dl.graph(context=…)"),
        (dl.sweep, {"graph": "a:b"}, "now dl.graph(graph, inputs)"),
        (dl.crash_test, {"system": "a:b", "kill": False}, "kill"),
        (dl.tune, {"stops_on_disconnect": False}, 'now World(server="goes-on")'),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_right_one(
    call: Callable[..., Any], keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        call(**keywords)
    assert message in str(refused.value)


def test_numbers_of_numpy_and_columns_of_pandas_are_taken_as_pythons() -> None:
    same: dict[str, Any] = {"alternatives": "A", "workers": 1}
    study = dl.compare(dl.docmind(), np.float64(8), runs=np.int64(2), seed=np.int64(3), **same)
    assert study.runs.equals(dl.compare(dl.docmind(), 8.0, runs=2, seed=3, **same).runs)
    factors = {"decision_timeout_s": np.linspace(8, 9, 2), "retries": pd.Series([0, 1])}
    swept = dl.sweep(dl.docmind(), {"alternatives": "A", **factors}, runs=np.int64(1), workers=1)
    assert len(swept.runs) == 4


def test_a_bare_graph_is_a_system_and_nothing_is_docmind() -> None:
    asked = resolve(dl.docmind())[0]
    assert asked.workload == "supervisor"
    with pytest.raises(ConfigurationError, match="module no_such_module does not import"):
        dl.compare("no_such_module:graph")


def test_dl_has_the_systems_that_the_catalogue_lists() -> None:
    named = {system.noun.removeprefix("dl."): system for system in SYSTEMS}
    assert {"System", *named} == set(system_catalogue.__all__) <= set(dl.__all__)
    assert all(getattr(dl, name) is system for name, system in named.items())
    assert system_of_kind("hops", adoption=0.5) == dl.hops(adoption=0.5)
    assert system_of_kind("mine:KIND") == dl.workload(kind="mine:KIND")


def test_what_services_are_told_stands_in_a_world_or_a_system() -> None:
    told = {field.name for field in dataclasses.fields(ServiceConditions)}
    assert told == {*dl.World().simulation, *ServiceConditions.of(dl.hops())}


@pytest.mark.parametrize(
    ("options", "nouns"),
    [
        ({}, (dl.docmind(), dl.World())),
        ({"graph": "a:b", "inputs": "i.jsonl"}, (dl.graph("a:b", "i.jsonl"), dl.World())),
        ({"system": "hops", "adoption": 0.5, "latencies": "fast"}, (dl.hops(adoption=0.5), dl.World(latencies="fast"))),
        ({"system": "mine:KIND"}, (dl.workload(kind="mine:KIND"), dl.World())),
        ({"model_variation": 0.5}, (dl.docmind(), dl.World(model=dl.ScriptedModel(0.5)))),
        ({"record": "r"}, (dl.docmind(), dl.Live(services="simulated", record="r"))),
        ({"services": "own", "graph": "a:b"}, (dl.graph("a:b"), dl.Live())),
        ({"services": "simulated", "graph": "a:b"}, (dl.graph("a:b"), dl.World())),
        ({"replay": "r", "retries": 0}, (dl.docmind(retries=0), dl.Replay("r"))),
    ],
)
def test_options_by_name_are_a_system_and_a_world(options: dict[str, Any], nouns: tuple[Any, Any]) -> None:
    """And nothing goes to a user's own endpoints unless `services` says so."""
    made = nouns_of({**options, "runs": 3})
    assert (made["system"], made["world"], made["runs"]) == (*nouns, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph": "a:b", "agent": "a:b"}, "graph and agent name 2 systems; leave one out"),
        ({"adoption": 0.5}, "adoption is an option of hops, workload, and not of docmind; leave it out"),
        (
            {"graph": "a:b", "questions": "q.jsonl"},
            "questions is an option of docmind, research, peers, workload, and not",
        ),
        ({"agent": "a:b", "enforced": True}, "enforced is an option of graph, and not of agent"),
        ({"inputs": "i.jsonl"}, "inputs is an option of graph, agent, command, and not of docmind"),
        ({"system": "hops", "graph": "a:b"}, "system and graph name 2 systems"),
        ({"system": "nope"}, "unknown system 'nope'; the systems are docmind, research, staged, peers, hops"),
        ({"replay": "r", "faults": "hang"}, "faults: the recording has settled it"),
        ({"record": "r", "clock": "virtual"}, "record: in virtual time nothing is sent"),
    ],
)
def test_options_that_do_not_go_together_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        nouns_of(options)
    assert message in str(refused.value)


def test_a_world_has_one_way_to_say_what_its_server_does() -> None:
    stops, goes_on = (resolve(dl.docmind(), world=dl.World(server=name))[0] for name in ("stops", "goes-on"))
    assert (stops.server_behaviour, goes_on.server_behaviour) == (STOPS, GOES_ON)
    assert dl.World(server=GOES_ON).behaviour == dl.World(server="goes-on").behaviour == GOES_ON
    with pytest.raises(ConfigurationError, match="server behaviour must be one of stops, goes-on"):
        dl.World(server="nginx")


def test_workers_are_runs_side_by_side_on_the_wall_clock_and_not_in_the_design_of_virtual_time() -> None:
    wall = resolve(dl.docmind(), world=dl.World(clock="wall"), workers=2)[0]
    one, two = (resolve(dl.docmind(), workers=workers)[0] for workers in (1, 2))
    assert wall.side_by_side == 2
    assert one.study_id == two.study_id


def test_each_field_of_a_system_and_a_world_has_an_option_with_its_own_words() -> None:
    nouns = [*NOUNS[:8], dl.Live()]
    fields = {field.name for noun in nouns for field in dataclasses.fields(noun)}
    without = {"budget", "settings", "before_sending", "model"}
    assert fields - without <= PARAMETERS.keys()
    helps = {name: each.annotation.__metadata__[0].help for name, each in PARAMETERS.items()}
    assert all(text.endswith(".") and "None means" not in text for text in helps.values())
    assert "drawn by seed" in helps["adoption"]


def test_each_budget_each_way_out_and_documents_of_ones_own_have_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []

    @functools.wraps(dl.compare)
    def compare(**keywords: Any) -> None:
        calls.append(keywords)
        raise ConfigurationError("it is not run")

    monkeypatch.setattr("docmind_lab.experiments.comparison.comparison_run.compare", compare)
    words = "--budget-tokens 6000 --budget-calls 12 --budget-cost 0.02 --price 0.15/0.60 --otlp "
    words += "--documents papers --questions questions.jsonl"
    for options in ("", words):
        CliRunner().invoke(app, ["compare", "--json", *options.split()])
    plain, full = calls
    assert (plain["system"], plain["world"], plain["telemetry"]) == (dl.docmind(), dl.World(), Telemetry())
    budget = dl.Budget(tokens=6000, calls=12, cost=0.02, price=dl.Price(0.15, 0.60))
    assert full["system"] == dl.docmind("papers", "questions.jsonl", budget=budget)
    assert full["telemetry"] == Telemetry(spans="otlp")


# ---- studies


def test_a_study_file_has_a_system_and_a_world_and_the_id_of_the_older_form(tmp_path: Path) -> None:
    older = tmp_path / "older.toml"
    older.write_text(
        "repeats = 3\ncpu_charge = 0.01\n[factors]\nworkload = 'hops'\nalternative = ['A', 'C']\nadoption = 0.5\n"
        "latency_profile = 'typical'\nfault = ['none', 'hang']\nstops_on_disconnect = [true, false]\n"
    )
    newer = tmp_path / "newer.toml"
    newer.write_text(
        "repeats = 3\n[system]\nname = 'hops'\nadoption = 0.5\n[world]\ncpu_charge = 0.01\nlatencies = 'typical'\n"
        "[factors]\nalternatives = ['A', 'C']\nfaults = ['none', 'hang']\nserver = ['stops', 'goes-on']\n"
    )
    assert StudyDesign.read(newer).to_dict() == StudyDesign.read(older).to_dict()
    assert StudyDesign.read(newer).study_id == StudyDesign.read(older).study_id


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"system": {"name": "hops"}, "factors": {"system": "peers"}}, "workload: it is a factor and an option"),
        ({"world": {"faults": "hang"}, "factors": {"faults": "none"}}, "fault: it is a factor and an option"),
        ({"system": {"command": "node agent.mjs"}}, "command: a study runs in virtual time"),
        ({"world": {"record": "r"}}, "record: a study has no caps and no recording"),
        ({"world": dl.Live(before_sending=print)}, "before_sending: a study asks nobody before it sends"),
        ({"system": dl.graph("a:b", enforced=True)}, "enforced: a study has no such option"),
        ({"world": {"services": "own"}, "system": {"graph": "a:b"}}, "services: a study sends nothing"),
        ({"system": "hops"}, "system: must be a table, such as [system]"),
        ({"system": {"graph": "a:b", "retries": 1}}, "retries is an option of docmind"),
    ],
)
def test_tables_of_a_study_that_cannot_be_are_refused_by_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        StudyDesign.of(values)
    assert message in str(refused.value)


def test_a_sweep_of_nouns_is_the_sweep_of_the_design_that_they_mean() -> None:
    factors = {"alternatives": "A", "decision_timeout_s": [6, 8], "latencies": "typical"}
    by_nouns = dl.sweep(dl.docmind(retries=0), factors, runs=1, seed=3, workers=1)
    values = {"alternative": "A", "decision_timeout_s": [6, 8], "latency_profile": "typical", "retries": 0}
    assert by_nouns.manifest["study_id"] == StudyDesign.of({"seed": 3, "repeats": 1, "factors": values}).study_id
    with pytest.raises(ConfigurationError, match="a design has its own; leave them out"):
        dl.sweep({"repeats": 1}, factors)


def test_a_study_of_a_graph_without_inputs_asks_one_question_as_a_comparison_does() -> None:
    graph = f"{Path(__file__).parents[1] / 'examples' / 'my_app.py'}:graph"
    asked = resolve(dl.graph(graph))[0]
    for values in ({"system": dl.graph(graph)}, {"system": {"graph": graph}}, {"graph": graph}):
        assert StudyDesign.of(values).library == asked.documents


def test_several_faults_and_latencies_by_role_of_a_world_are_one_level() -> None:
    world = {"latencies": ["typical", "judge=fast"], "faults": ["hang:planner", "stall=5"]}
    factors = StudyDesign.of({"world": world, "system": {"name": "research"}}).factors
    assert factors.latency_profile == ("typical,judge=fast",)
    assert factors.fault == ("hang:planner+stall=5",)


def test_a_system_that_no_doctor_examines_is_advised_on_by_its_runs_alone() -> None:
    world = dl.World(latencies="typical")
    advice = dl.recommend(dl.docmind(), 0.5, alternatives="A", world=world, runs=12, workers=1)
    assert (advice.alternative, advice.report) == ("A", None)
    assert f"DOCMIND_AGENTS__DECISION_TIMEOUT={advice.decision_timeout_s:g}" in advice.text()
    assert advice.missing[0].startswith("what a request that hangs does")


def test_a_noun_shows_first_what_it_cannot_do_without() -> None:
    assert repr(dl.graph("my_app:graph", ["a"])) == "dl.graph('my_app:graph', inputs=['a'])"
