"""What the controls of a panel say: the comparison that it means, and Python that means the same."""

from __future__ import annotations

from typing import Any

import graphs_agent
import pytest

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import comparison_run as run
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.views.panels.panel_settings import PanelChoice

EVERYONE = ("control", "A", "B", "C", "D", "E", "F")
MANY_FAULTS = dl.World(faults=("hang:planner", "stall=5"), server="goes-on", cpu_charge=0.01)
FIRST = PanelChoice.of()
CHOICES = (
    PanelChoice.of(dl.research(budget=dl.Budget(time_s=9, calls=8)), alternatives="A, B").changed("runs", 3),
    FIRST.changed("decision_timeout_s", 8.5).changed("fault", "stall=5@1:*:0.2").changed("strikes", "planner"),
    PanelChoice.of(dl.docmind(retries=0), alternatives=("control", "A:per_read", "E")).changed(
        "decision_timeout_s", 3.5
    ),
    PanelChoice.of(alternatives=EVERYONE, deadline_propagation="on").changed("router_injection", True),
    PanelChoice.of(dl.docmind(retries=1), 8, alternatives=("control", "A", "A+aware"), world=MANY_FAULTS),
    PanelChoice.of(alternatives=("B",), deadline_propagation="on", world=dl.World(latencies={"planner": "fast"})),
    PanelChoice.of(alternatives=("A", "E", "F"), deadline_propagation="off", world=dl.World(clock="wall")),
    PanelChoice.of(dl.graph("graphs_agent:make", ["What is yield?"])).changed("fault", "hang"),
)


@pytest.mark.parametrize("choice", CHOICES)
def test_the_code_makes_the_same_comparison(choice: PanelChoice, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Comparison] = []
    monkeypatch.setattr(run, "run_comparison", lambda comparison, *_, **__: made.append(comparison))
    exec(choice.code(), {})
    assert made == [choice.comparison(Settings())]


def test_propagation_is_set_for_those_that_have_the_choice() -> None:
    on = PanelChoice.of(alternatives=EVERYONE, deadline_propagation="on").comparison(Settings())
    assert {item.name for item in on.alternatives if not item.propagates} == {"unguarded"}
    off = PanelChoice.of(alternatives=EVERYONE, deadline_propagation="off").comparison(Settings())
    assert not any(item.propagates for item in off.alternatives)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alternatives": ("B:naive",), "deadline_propagation": "on"}, "B:naive"),
        ({"system": dl.staged(), "alternatives": ("A+wind_down",)}, "wind_down"),
        ({"system": dl.command("cat", ["a"]), "world": dl.World(clock="virtual")}, r"clock='wall'"),
        ({"world": dl.Live()}, r"dl\.compare takes Live\(…\)"),
    ],
)
def test_what_a_panel_cannot_measure_is_refused_with_a_remedy(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PanelChoice.of(**arguments)


def test_a_program_is_measured_on_the_wall_clock_alone() -> None:
    choice = PanelChoice.of(dl.command("cat", ["a"]))
    assert choice.clock == "wall"
    with pytest.raises(ConfigurationError, match="another process runs in real time"):
        choice.changed("clock", "virtual").comparison(Settings())


def test_a_users_graph_has_its_nodes_to_be_struck_and_a_graph_object_a_name_in_the_code() -> None:
    choice = PanelChoice.of(dl.graph(graphs_agent.make(), ["What is yield?"])).changed("fault", "hang")
    controls = {control["name"]: control for control in choice.controls({})}
    nodes = choice.comparison(Settings()).kind.roles
    assert [value for value, _ in controls["strikes"]["options"]] == [*nodes, "*"]
    assert controls["strikes"]["value"] == "*"
    assert "router_injection" not in controls
    assert choice.code().splitlines()[3] == "    system,"
