"""What the controls of a panel say: the comparison that it means, and Python that means the same."""

from __future__ import annotations

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import comparison_run as run
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.views.panels.panel_settings import PanelChoice

CHOICES = (
    PanelChoice(),
    PanelChoice(8.5, 3, 11, ("control", "A:per_read", "E"), fault="stall=5@1:*:0.2", corpus="handbook"),
    PanelChoice(
        alternatives=("control", "A", "B", "C", "D", "E", "F"), deadline_propagation="on", router_injection=True
    ),
    PanelChoice(alternatives=("control", "A", "A+aware")),
    PanelChoice(alternatives=("B+aware",), deadline_propagation="on"),
    PanelChoice(alternatives=("A", "E", "F"), deadline_propagation="off", stops_on_disconnect=False, clock="wall"),
)


@pytest.mark.parametrize("choice", CHOICES)
def test_the_code_makes_the_same_comparison(choice: PanelChoice, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Comparison] = []
    monkeypatch.setattr(run, "run_comparison", lambda comparison, *_, **__: made.append(comparison))
    exec(choice.code(), {})
    assert made == [choice.comparison(Settings())]


def test_propagation_is_set_for_those_that_have_the_choice() -> None:
    everyone = ("control", "A", "B", "C", "D", "E", "F")
    on = PanelChoice(alternatives=everyone, deadline_propagation="on").comparison(Settings())
    assert {item.name for item in on.alternatives if not item.propagates} == {"unguarded"}
    off = PanelChoice(alternatives=everyone, deadline_propagation="off").comparison(Settings())
    assert not any(item.propagates for item in off.alternatives)


def test_a_variant_has_its_propagation_in_its_name() -> None:
    with pytest.raises(ConfigurationError, match="B:naive"):
        PanelChoice(alternatives=("B:naive",), deadline_propagation="on").named_alternatives()
