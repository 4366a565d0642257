"""The controls of a panel: labelled widgets, each kept in step with a trait of the panel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import ipywidgets as widgets
import traitlets

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.catalogue import default_alternatives, label_of, letter_of
from docmind_lab.core.clock import CLOCKS
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import one_line
from docmind_lab.services.faults import FAULT_KINDS
from docmind_lab.systems.kinds import WORKLOADS, workload_kind
from docmind_lab.views.panels.choice import LEAST_TIMEOUT_S, MOST_TIMEOUT_S, PROPAGATION_LEVELS

# A press of a key is 5 %: from one second to a hundred in as many presses as there are tones on a piano.
_STEP_EXPONENT: Final = 0.02
_PROFILES: Final = ("heavy_tail/3", "heavy_tail", "typical", "typical/6", "fast", "local_gpu")
_POLICIES: Final = ("none", "hedge:4s", "aware", "wind_down", "anytime")
_NAMED: Final = {"style": {"description_width": "initial"}}


class Controls:
    """The widgets that change the traits of a panel, and follow them.

    say: called with what is wrong with a text that was typed; the trait then stays as it was.
    """

    def __init__(self, panel: traitlets.HasTraits, say: Callable[[str], None]) -> None:
        self._panel, self._say = panel, say
        self._timeouts()
        self._boxes = widgets.Box([])
        self._alternatives()
        row = {"layout": {"width": "auto"}, **_NAMED}
        narrow = {"layout": {"width": "230px"}, **_NAMED}
        self._tie(
            "deadline_propagation",
            widgets.Dropdown(options=PROPAGATION_LEVELS, description="Deadline propagation", **row),
        )
        self._tie(
            "policies",
            widgets.Combobox(options=_POLICIES, description="Time policies", continuous_update=False, **narrow),
        )
        self._tie("router_injection", widgets.Checkbox(description="Router injection", indent=False, **row))
        self._tie(
            "stops_on_disconnect", widgets.Checkbox(description="Server stops on disconnect", indent=False, **row)
        )
        self._tie(
            "latency_profile",
            widgets.Combobox(options=_PROFILES, description="Latency profile", continuous_update=False, **narrow),
        )
        self._tie(
            "fault", widgets.Combobox(options=FAULT_KINDS, description="Fault", continuous_update=False, **narrow)
        )
        # Without bounds of their own: a bounded field would move what was typed to its nearest end, and say nothing.
        self._tie("runs", widgets.IntText(description="Runs of each", **row))
        self._tie("seed", widgets.IntText(description="Seed", **row))
        self._tie("clock", widgets.Dropdown(options=CLOCKS, description="Clock", **row))
        known = dict.fromkeys((*WORKLOADS, getattr(self._panel, "workload")))  # noqa: B009 - a trait, as above
        self._tie("workload", widgets.Dropdown(options=list(known), description="Workload", **row), self._defaults_of)

    def rows(self) -> list[Any]:
        """Return the controls in rows, one row for each subject."""
        system = ("workload", "deadline_propagation", "policies", "router_injection")
        services = ("latency_profile", "fault", "stops_on_disconnect")
        measuring = ("runs", "seed", "clock")
        rows = (system, services, measuring)
        return [_row([self.slider, self.typed]), self._boxes, *(_row([self.of(name) for name in row]) for row in rows)]

    def of(self, name: str) -> Any:
        """Return the widget of a trait."""
        return getattr(self, f"_of_{name}")

    def _tie(self, name: str, widget: Any, then: Callable[[Any], None] | None = None) -> None:
        """Keep a widget and its trait equal; report a value that the trait refuses, and restore the old one.

        then: called with what was chosen by hand.
        """
        setattr(self, f"_of_{name}", widget)
        widget.value = getattr(self._panel, name)

        def typed(change: Any) -> None:
            if change.new == getattr(self._panel, name):
                return
            try:
                setattr(self._panel, name, change.new)
            except (ConfigurationError, traitlets.TraitError) as error:
                self._say(str(error))
                widget.value = getattr(self._panel, name)
                return
            if then is not None:
                then(change.new)

        def set_by_code(change: Any) -> None:
            widget.value = change.new

        widget.observe(typed, "value")
        self._panel.observe(set_by_code, name)

    def _defaults_of(self, workload: str) -> None:
        """Set the timeout and latencies that suit another workload, so that its runs show something."""
        defaults = workload_kind(workload).defaults["virtual"]
        longest_s = min(defaults.decision_timeout_s, MOST_TIMEOUT_S)
        for name, value in (("decision_timeout_s", longest_s), ("latency_profile", defaults.profile)):
            setattr(self._panel, name, value)

    def _timeouts(self) -> None:
        """Build the timeout's slider, which is logarithmic and rounds, and its text field, which does not round."""
        now_s: float = getattr(self._panel, "decision_timeout_s")  # noqa: B009 - a trait of whoever has these controls
        self.slider = widgets.FloatLogSlider(
            value=now_s,
            min=math.log10(LEAST_TIMEOUT_S),
            max=math.log10(MOST_TIMEOUT_S),
            step=_STEP_EXPONENT,
            description="Decision timeout (s)",
            readout_format=".3g",
            layout={"width": "520px"},
            **_NAMED,
        )
        self.typed = widgets.FloatText(
            value=now_s,
            step=1.0,
            description="or type it (s)",
            layout={"width": "190px"},
            **_NAMED,
        )
        following = False

        def dragged(change: Any) -> None:
            # A browser moves what code has set to the nearest step of its slider, and says so: that is no drag.
            at_s: float = getattr(self._panel, "decision_timeout_s")  # noqa: B009 - a trait, as above
            if not following and abs(math.log10(change.new / at_s)) > _STEP_EXPONENT / 2:
                self._panel.set_trait("decision_timeout_s", float(f"{change.new:.3g}"))

        def set_by_code(change: Any) -> None:
            nonlocal following
            following = True
            # Half a step is where the handle would stand anyhow; to write it back would jerk it while it is dragged.
            if abs(math.log10(self.slider.value / change.new)) > _STEP_EXPONENT / 2:
                self.slider.value = change.new
            self.typed.value = change.new
            following = False

        self.slider.observe(dragged, "value")

        def typed(change: Any) -> None:
            if following:
                return
            try:
                self._panel.set_trait("decision_timeout_s", change.new)
            except (ConfigurationError, traitlets.TraitError) as error:
                self._say(str(error))
                self.typed.value = getattr(self._panel, "decision_timeout_s")  # noqa: B009 - a trait, as above

        self.typed.observe(typed, "value")
        self._panel.observe(set_by_code, "decision_timeout_s")

    def _alternatives(self) -> None:
        """Build a checkbox for each alternative, and for each variant that code has requested."""
        boxes: dict[str, Any] = {}
        following = False

        def ticked(_: Any) -> None:
            if following:
                return
            chosen = tuple(name for name, box in boxes.items() if box.value)
            try:
                self._panel.set_trait("alternatives", chosen)
            except ConfigurationError as error:
                self._say(str(error))
                follow(getattr(self._panel, "alternatives"))  # noqa: B009 - a trait of whoever has these controls

        def follow(names: Sequence[str]) -> None:
            nonlocal following
            following = True
            for name in (*map(letter_of, default_alternatives()), *names):
                if name not in boxes:
                    boxes[name] = widgets.Checkbox(description=_label(name), indent=False, layout={"width": "auto"})
                    boxes[name].observe(ticked, "value")
            for name, box in boxes.items():
                box.value = name in names
            self._boxes.children = tuple(boxes.values())
            following = False

        self._boxes.add_class("docmind-row")
        self.boxes = boxes
        follow(getattr(self._panel, "alternatives"))  # noqa: B009 - a trait of whoever has these controls
        self._panel.observe(lambda change: follow(change.new), "alternatives")


def _label(name: str) -> str:
    (alternative,) = parse_alternatives([name])
    variant = name.partition(":")[2]
    return one_line(label_of(alternative.name)) + (f" ({variant})" if variant else "")


def _row(children: Sequence[Any]) -> Any:
    row = widgets.Box(list(children))
    row.add_class("docmind-row")
    return row
