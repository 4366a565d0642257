"""The controls of a panel: labelled widgets, each kept in step with a trait of the panel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import ipywidgets as widgets
import traitlets

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.alternative_catalogue import default_alternatives, label_of, letter_of
from docmind_lab.core.clock import CLOCKS
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import one_line
from docmind_lab.services.faults import FAULT_KINDS
from docmind_lab.systems.kinds import WORKLOADS, workload_kind
from docmind_lab.views.panels.panel_settings import LEAST_TIMEOUT_S, MOST_TIMEOUT_S, PROPAGATION_LEVELS

# A press of a key is 5 %: from one second to a hundred in as many presses as there are tones on a piano.
_STEP_EXPONENT: Final = 0.02
_PROFILES: Final = ("heavy_tail/3", "heavy_tail", "typical", "typical/6", "fast", "local_gpu")
_NAMED: Final = {"style": {"description_width": "initial"}}


class Controls:
    """The widgets that change the traits of a panel, and follow them.

    say: called with what is wrong with a text that was typed; the trait then stays as it was.
    """

    def __init__(self, panel: Any, say: Callable[[str], None]) -> None:
        self._panel, self._say = panel, say
        self._widgets: dict[str, Any] = {}
        self._timeouts()
        self._boxes = widgets.Box([])
        self._alternatives()
        row = {"layout": {"width": "auto"}, **_NAMED}
        narrow = {"layout": {"width": "230px"}, "continuous_update": False, **_NAMED}
        tick = {"indent": False, **row}
        levels, known = PROPAGATION_LEVELS, list(dict.fromkeys((*WORKLOADS, panel.workload)))
        # Numbers without bounds of their own: a bounded field would move what was typed to its nearest end, and say
        # nothing.
        tied = {
            "deadline_propagation": widgets.Dropdown(options=levels, description="Deadline propagation", **row),
            "router_injection": widgets.Checkbox(description="Router injection", **tick),
            "stops_on_disconnect": widgets.Checkbox(description="Server stops on disconnect", **tick),
            "latency_profile": widgets.Combobox(options=_PROFILES, description="Latency profile", **narrow),
            "fault": widgets.Combobox(options=FAULT_KINDS, description="Fault", **narrow),
            "runs": widgets.IntText(description="Runs of each", **row),
            "seed": widgets.IntText(description="Seed", **row),
            "clock": widgets.Dropdown(options=CLOCKS, description="Clock", **row),
        }
        for name, widget in tied.items():
            self._tie(name, widget)
        self._tie("workload", widgets.Dropdown(options=known, description="Workload", **row), self._defaults_of)

    def rows(self) -> list[Any]:
        """Return the controls in rows, one row for each subject."""
        system = ("workload", "deadline_propagation", "router_injection")
        services = ("latency_profile", "fault", "stops_on_disconnect")
        measuring = ("runs", "seed", "clock")
        rows = (system, services, measuring)
        return [_row([self.slider, self.typed]), self._boxes, *(_row([self.of(name) for name in row]) for row in rows)]

    def of(self, name: str) -> Any:
        """Return the widget of a trait."""
        return self._widgets[name]

    def _tie(self, name: str, widget: Any, then: Callable[[Any], None] | None = None) -> None:
        """Keep a widget and its trait equal; report a value that the trait refuses, and restore the old one.

        then: called with what was chosen by hand.
        """
        self._widgets[name] = widget
        widget.value = getattr(self._panel, name)

        def typed(change: Any) -> None:
            if change.new == getattr(self._panel, name):
                return
            if not self._has_set(name, change.new):
                widget.value = getattr(self._panel, name)
            elif then is not None:
                then(change.new)

        def set_by_code(change: Any) -> None:
            widget.value = change.new

        widget.observe(typed, "value")
        self._panel.observe(set_by_code, name)

    def _has_set(self, name: str, value: object) -> bool:
        """Set a trait; if it refuses the value, say why and return False."""
        try:
            setattr(self._panel, name, value)
        except (ConfigurationError, traitlets.TraitError) as error:
            self._say(str(error))
            return False
        return True

    def _defaults_of(self, workload: str) -> None:
        """Set the timeout and latencies that suit another workload, so that its runs show something."""
        defaults = workload_kind(workload).defaults["virtual"]
        longest_s = min(defaults.decision_timeout_s, MOST_TIMEOUT_S)
        for name, value in (("decision_timeout_s", longest_s), ("latency_profile", defaults.profile)):
            setattr(self._panel, name, value)

    def _timeouts(self) -> None:
        """Build the timeout's slider, which is logarithmic and rounds, and its text field, which does not round."""
        self.slider = widgets.FloatLogSlider(
            value=self._panel.decision_timeout_s,
            min=math.log10(LEAST_TIMEOUT_S),
            max=math.log10(MOST_TIMEOUT_S),
            step=_STEP_EXPONENT,
            description="Decision timeout (s)",
            readout_format=".3g",
            layout={"width": "520px"},
            **_NAMED,
        )
        self.typed = widgets.FloatText(step=1.0, description="or type it (s)", layout={"width": "190px"}, **_NAMED)
        self._tie("decision_timeout_s", self.typed)

        def is_elsewhere(at_s: float, handle_s: float) -> bool:
            # Half a step is where the handle would stand anyhow.
            return abs(math.log10(handle_s / at_s)) > _STEP_EXPONENT / 2

        def dragged(change: Any) -> None:
            # A browser moves what code has set to the nearest step of its slider, and says so: that is no drag.
            if is_elsewhere(self._panel.decision_timeout_s, change.new):
                self._panel.decision_timeout_s = float(f"{change.new:.3g}")

        def set_by_code(change: Any) -> None:
            # To write it back within a step would jerk the handle while it is dragged.
            if is_elsewhere(change.new, self.slider.value):
                self.slider.value = change.new

        self.slider.observe(dragged, "value")
        self._panel.observe(set_by_code, "decision_timeout_s")

    def _alternatives(self) -> None:
        """Build a checkbox for each alternative, and for each variant that code has requested."""
        boxes: dict[str, Any] = {}
        following = False

        def ticked(_: Any) -> None:
            if following:
                return
            chosen = tuple(name for name, box in boxes.items() if box.value)
            if not self._has_set("alternatives", chosen):
                follow(self._panel.alternatives)

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
        follow(self._panel.alternatives)
        self._panel.observe(lambda change: follow(change.new), "alternatives")


def _label(name: str) -> str:
    (alternative,) = parse_alternatives([name])
    variant = name.partition(":")[2]
    return one_line(label_of(alternative.name)) + (f" ({variant})" if variant else "")


def _row(children: Sequence[Any]) -> Any:
    row = widgets.Box(list(children))
    row.add_class("docmind-row")
    return row
