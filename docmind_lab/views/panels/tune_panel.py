"""`tune()`: a panel that measures its settings as the controls move.

panel = dl.tune(decision_timeout_s=20, runs=40)
panel.decision_timeout_s = 8          # as if the slider had been moved
study = panel.wait()                  # the study on screen, once all of its runs are done
print(panel.code)                     # the Python that makes the same study
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import ipywidgets as widgets
import traitlets

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.randomness import run_seed
from docmind_lab.core.server_behaviour import GOES_ON
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Workers
from docmind_lab.experiments.system_options import DocMind, LabSystem
from docmind_lab.experiments.world_options import World
from docmind_lab.findings.study import Study
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.kinds import workload_kind
from docmind_lab.views.panels import page
from docmind_lab.views.panels.engine import Engine, KnownRuns, warm_processes
from docmind_lab.views.panels.newest import Newest
from docmind_lab.views.panels.panel_controls import Controls
from docmind_lab.views.panels.panel_run import PanelRun, needs_run, request_in_words, status_of
from docmind_lab.views.panels.panel_settings import SETTINGS, ChoiceTraits, PanelChoice, PropagationLevel
from docmind_lab.views.panels.study_tabs import StudyTabs

# Drawing takes as long as some runs: it rests five times as long as it took, so that frames do not cost the runs that
# they wait for. And nobody looks more often than a few times a second.
_FRAME_EVERY_S: Final = 0.35
_REST: Final = 5.0
# A screen reader reads a status to its end; a new one every half second would never be heard.
_SAY_EVERY_S: Final = 2.0


class TunePanel(ChoiceTraits):
    """The panel that `tune` returns. Its settings are traits, tied to its controls; see `ChoiceTraits`.

    In virtual time a change of a setting is measured at once, the newest only; on the wall clock when `run` is called.

    Args:
        choice: The settings to begin with.
        workers: A factory of the processes that compute the runs.
        known: Runs that need not be computed again.
        settings: Those of the environment when left out.
        frame_every_s: Seconds between two drawings, at least.

    Attributes:
        status: Status line of the panel; a trait.
        running: Whether runs are under way; a trait.
    """

    status = traitlets.Unicode("")
    running = traitlets.Bool(False)

    def __init__(
        self,
        choice: PanelChoice,
        *,
        workers: Callable[[], Workers] = warm_processes,
        known: KnownRuns | None = None,
        settings: Settings | None = None,
        frame_every_s: float = _FRAME_EVERY_S,
    ) -> None:
        super().__init__(choice)
        self._screen = threading.RLock()
        self._engine = Engine(self._show_progress, workers=workers, known=known, settings=settings)
        self._painter = Newest(self._paint, "docmind-panel-frames")
        self._frame_every_s = frame_every_s
        self._hurry = threading.Event()
        self._paint_next_at = self._said_at = -math.inf
        self._sweep: PanelRun | None = None
        self._shown: PanelChoice | None = None
        self.tabs = StudyTabs(self._repaint)
        self.tabs.question_seed = choice.first_run_seed
        self._build()
        self.observe(self._measure_change, list(SETTINGS))
        self._measure_change()

    def _build(self) -> None:
        self.controls = Controls(self, self._say)
        self.run_button = widgets.Button(description="Run", icon="play", tooltip="Measure what the controls say")
        self.stop_button = widgets.Button(description="Stop", icon="stop", disabled=True, tooltip="End within one run")
        self.progress = widgets.IntProgress(min=0, max=1, value=0, layout={"width": "260px"})
        self._copy = widgets.Button(description="Copy code", icon="copy", tooltip="Copy the Python of this study")
        self._copy.add_class(page.COPY_CLASS)
        self._code, self._status = widgets.HTML(), widgets.HTML()
        self._code.add_class(page.CODE_CLASS)
        self._status.add_class(page.STATUS_CLASS)
        self.run_button.on_click(lambda _: self.run())
        self.stop_button.on_click(lambda _: self.stop())
        buttons = widgets.Box([self.run_button, self.stop_button, self.progress])
        buttons.add_class("docmind-row")
        parts = [
            *page.style_and_script(),
            *self.controls.rows(),
            buttons,
            self._status,
            self.tabs.widget,
            self._copy,
            self._code,
        ]
        self.widget = widgets.VBox(parts)
        self.widget.add_class(page.PANEL_CLASS)

    @property
    def study(self) -> Study:
        """The study of the runs done under the settings requested last: the data on screen, or about to be.

        Raises: ConfigurationError before anything has been asked for, which is so on the wall clock until `run`.
        """
        if self._sweep is None:
            raise ConfigurationError("the panel has measured nothing yet; call run() and wait()")
        return self._sweep.study()

    @property
    def code(self) -> str:
        """The Python code that makes this study, as it is once all of its runs are done."""
        return (self.choice if self._sweep is None else self._sweep.choice).code()

    def run(self) -> None:
        """Measure the current settings; on the wall clock nothing else does."""
        choice = self.choice
        with self._screen:
            number = self._engine.request(choice)
            self._sweep = PanelRun(number, choice, self._engine.settings)
            self._paint_next_at = self._said_at = -math.inf
            # A painter that rests after a frame of the request before has something newer to draw soon.
            self._hurry.set()
            self.running = True
            self.stop_button.disabled = False
            self.progress.value = 0
            self._code.value = page.code_html(choice.code())
            self._say(request_in_words(choice, self._shown))
            self.tabs.mark(choice)

    def stop(self) -> None:
        """End the current runs within one run, and keep those that are done; does nothing when idle."""
        self._engine.stop()

    def wait(self, timeout_s: float = 300.0) -> Study:
        """Wait until the runs requested last are done, or stopped, and drawn; return the study.

        timeout_s: seconds to wait at most. Raises: TimeoutError (it takes longer; the runs go on); Exception (the error
        that the runs failed with).
        """
        limit_at = time.monotonic() + timeout_s
        done = self._engine.wait(timeout_s) and self._painter.wait(max(0.0, limit_at - time.monotonic()))
        if not done:
            raise TimeoutError(f"timeout_s={timeout_s:g}: {self.status}; the runs go on, so wait again, or call stop()")
        if self._sweep is not None and self._sweep.error is not None:
            raise self._sweep.error
        return self.study

    def close(self) -> None:
        """End the runs and the threads of the panel, and remove it from every page."""
        self._engine.close()
        self._painter.close()
        self._hurry.set()
        with self._screen:
            self.running = False
            self.stop_button.disabled = True
            page.close_all(self.widget)

    def _measure_change(self, change: Any = None) -> None:
        """Measure the settings after a control has moved, or say why not."""
        if change is not None and change.name == "seed" and self.tabs.question_seed == run_seed(change.old, 1):
            self.tabs.question_seed = run_seed(change.new, 1)
        if self.clock == "virtual":
            self.run()
            return
        with self._screen:
            if not self.running:
                self._code.value = page.code_html(self.code)
                self._say(needs_run(self.choice))
            self.tabs.mark(self.choice)

    def _show_progress(self, sweep: PanelRun) -> None:
        """Show a request's progress; called in the thread of the engine."""
        with self._screen:
            if sweep.number != self._engine.number:
                return
            self._sweep = sweep
            self.progress.max = max(1, sweep.total)
            self.progress.value = len(sweep.measured)
            is_over = sweep.state != "running"
            if is_over or time.monotonic() - self._said_at >= _SAY_EVERY_S:
                self._said_at = time.monotonic()
                self._say(status_of(sweep))
            if is_over:
                self.stop_button.disabled = True
                # Last: whoever waits for it reads the status next, without waiting for this thread.
                self.running = False
        if sweep.measured:
            self._painter.ask(sweep.number)
        if is_over:
            self._hurry.set()

    def _repaint(self) -> None:
        """Redraw after another tab or question has come to the front."""
        with self._screen:
            self.tabs.mark(self.choice)
        if self._sweep is not None and self._sweep.measured:
            self._paint_next_at = -math.inf
            self._painter.ask(self._sweep.number)

    def _paint(self, _: int) -> None:
        """Draw the runs done so far; called in the thread of the painter, a few times a second at most."""
        with self._screen:
            sweep = self._sweep
        if sweep is None or not sweep.measured:
            return
        if sweep.state == "running":
            self._hurry.wait(max(0.0, self._paint_next_at - time.monotonic()))
            self._hurry.clear()
            with self._screen:
                sweep = self._sweep or sweep
        if not sweep.measured:
            return
        view, began_at = self.tabs.view, time.monotonic()
        content = self.tabs.draw(sweep.tables)
        with self._screen:
            now = time.monotonic()
            self._paint_next_at = now + max(self._frame_every_s, _REST * (now - began_at))
            if sweep.number == self._engine.number and view == self.tabs.view:
                self._shown = sweep.choice
                self.tabs.put(view, content, sweep.tables, sweep.choice)

    def _say(self, text: str) -> None:
        self.status = text
        self._status.value = page.text_html(text)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)

    def __repr__(self) -> str:
        return f"TunePanel({self.status})"


@answers_wrong_names
def tune(
    system: LabSystem | None = None,
    decision_timeout_s: float = 20.0,
    *,
    alternatives: Sequence[str] = ("A", "B", "C", "D"),
    deadline_propagation: PropagationLevel = "own",
    world: World | None = None,
    runs: int = 40,
    seed: int = 7,
    workers: Callable[[], Workers] = warm_processes,
) -> TunePanel:
    """Return a panel of controls and their results, measured in virtual time as the controls move.

        dl.tune()
        dl.tune(dl.docmind(router_injection=True), 8, alternatives=("A", "B"), world=dl.World(faults="hang"))

    Args:
        system: One of the lab's systems, with its documents. None means DocMind.
        decision_timeout_s: Seconds.
        alternatives: Letters, levels or variants.
        deadline_propagation: "own" leaves it to the alternative; "on" and "off" set it for those that have the choice.
        world: What it meets: latencies by the name of a profile, one fault, a server that stops or goes on, a clock.
        runs: Number of runs of each alternative.
        seed: Keys the questions, latencies and faults.
        workers: A factory of the processes that compute the runs.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    system, world = system or DocMind(), world or World()
    if not isinstance(system, LabSystem):
        raise ConfigurationError(f"{system!r}: a panel is of the lab's own systems; sweep a graph of your own")
    documents = str(getattr(system, "documents", HANDBOOK))
    workload_kind(system.kind).cases(documents)
    latencies = PanelChoice.latency_profile if world.latencies is None else world.latencies
    for name, value in (("latencies", latencies), ("faults", world.faults or "none")):
        if not isinstance(value, str):
            raise ConfigurationError(f"{name}: a panel has one, by its name, not {value!r}")
    choice = PanelChoice(
        decision_timeout_s=decision_timeout_s,
        runs=runs,
        seed=seed,
        alternatives=tuple(alternatives),
        deadline_propagation=deadline_propagation,
        router_injection=bool(getattr(system, "router_injection", False)),
        latency_profile=str(latencies),
        fault=str(world.faults or "none"),
        stops_on_disconnect=world.behaviour != GOES_ON,
        clock=world.clock or "virtual",
        corpus=documents,
        workload=system.kind,
    )
    return TunePanel(choice, workers=workers)
