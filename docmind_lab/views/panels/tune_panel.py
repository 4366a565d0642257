"""`tune()`: a panel that measures its settings as the controls move.

panel = dl.tune(dl.graph("my_app:graph", "inputs.jsonl"), 20)
panel.decision_timeout_s = 8          # as if the slider had been moved
study = panel.wait()                  # the study on screen, once all of its runs are done
print(panel.code)                     # the Python that makes the same study

What a page shows is state: traits, which panel.js draws. A page sends messages, and changes no trait itself.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anywidget
import traitlets

from docmind_lab.core.clock import CLOCKS
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Workers
from docmind_lab.experiments.comparison.comparison import DEFAULT_SEED
from docmind_lab.experiments.world_options import World
from docmind_lab.findings.study import Study
from docmind_lab.views.panels.engine import Engine, Newest, warm_processes
from docmind_lab.views.panels.page import MOST_LATE_WORK, VIEWS, view_html
from docmind_lab.views.panels.panel_run import PanelRun, changes, needs_run, request_in_words, status_of
from docmind_lab.views.panels.panel_settings import SETTINGS, SUFFIXES, PanelChoice, PropagationLevel

# Drawing takes as long as some runs: it rests five times as long as it took, so that frames do not cost the runs that
# they wait for. And nobody looks more often than a few times a second.
_FRAME_EVERY_S: Final = 0.35
_REST: Final = 5.0
# A screen reader reads a status to its end; a new one every half second would never be heard.
_SAY_EVERY_S: Final = 2.0
_SHOWN: Final = {"sync": True}


class TunePanel(anywidget.AnyWidget):
    """The panel that `tune` returns. Its settings are traits, tied to its controls.

    In virtual time a change of a setting is measured at once, the newest only; on the wall clock when `run` is called.
    A value that cannot be used raises ConfigurationError, or TraitError if it is of the wrong kind, and the trait then
    keeps the one it had; what is typed in a page is answered beside its control.

    Args:
        choice: The settings to begin with.
        workers: A factory of the processes that compute the runs.
        settings: Those of the environment when left out.
        frame_every_s: Seconds between two drawings, at least.

    Attributes:
        status: Status line of the panel.
        running: Whether runs are under way.
        view: The view in front: "Timeline", "Completion", "Overrun" or "Table".
        question: Number of the question whose timeline is shown; 0 is the one with the most work after its deadline.
        error: What the runs requested last failed with; empty if they did not.
    """

    _esm = Path(__file__).with_name("panel.js")
    _css = Path(__file__).with_name("panel.css")

    decision_timeout_s = traitlets.Float()
    runs = traitlets.Int()
    seed = traitlets.Int()
    alternatives = traitlets.Tuple()
    deadline_propagation = traitlets.Enum(("own", *SUFFIXES))
    router_injection = traitlets.Bool()
    latency_profile = traitlets.Unicode()
    fault = traitlets.Unicode()
    server = traitlets.Unicode()
    clock = traitlets.Enum(CLOCKS)

    view = traitlets.Enum(VIEWS, VIEWS[0]).tag(**_SHOWN)
    question = traitlets.Int(1, min=MOST_LATE_WORK).tag(**_SHOWN)
    narrow = traitlets.Bool(False)

    form = traitlets.Dict().tag(**_SHOWN)
    status = traitlets.Unicode("").tag(**_SHOWN)
    error = traitlets.Unicode("").tag(**_SHOWN)
    running = traitlets.Bool(False).tag(**_SHOWN)
    progress = traitlets.Tuple(default_value=(0, 1)).tag(**_SHOWN)
    page = traitlets.Unicode("").tag(**_SHOWN)
    note = traitlets.Unicode("").tag(**_SHOWN)
    code_shown = traitlets.Unicode("").tag(**_SHOWN)

    def __init__(
        self,
        choice: PanelChoice,
        *,
        workers: Callable[[], Workers] = warm_processes,
        settings: Settings | None = None,
        frame_every_s: float = _FRAME_EVERY_S,
    ) -> None:
        self._choice, self._errors, self._heard = choice, dict[str, str](), ""
        self._screen = threading.RLock()
        self._engine = Engine(self._show_progress, workers=workers, settings=settings)
        self._painter = Newest(self._paint, "docmind-panel-frames")
        self._frame_every_s = frame_every_s
        self._hurry = threading.Event()
        self._paint_next_at = self._said_at = -math.inf
        self._sweep: PanelRun | None = None
        self._shown: PanelChoice | None = None
        super().__init__(**{name: getattr(choice, name) for name in SETTINGS})
        self.observe(self._measure_change, list(SETTINGS))
        self.observe(self._repaint, ["view", "question", "narrow"])
        self.on_msg(self._answer)
        self._measure_change()

    @property
    def choice(self) -> PanelChoice:
        """The current settings of the panel."""
        return self._choice

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
        return (self._choice if self._sweep is None else self._sweep.choice).code()

    def run(self) -> None:
        """Measure the current settings; on the wall clock nothing else does."""
        with self._screen:
            choice = self._choice
            number = self._engine.request(choice)
            self._sweep = PanelRun(number, choice, self._engine.settings)
            self._paint_next_at = self._said_at = -math.inf
            # A painter that rests after a frame of the request before has something newer to draw soon.
            self._hurry.set()
            self.running, self.progress, self.error = True, (0, 1), ""
            self.code_shown = choice.code()
            self.status = request_in_words(choice, self._shown)
            self._mark()

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
            super().close()

    @traitlets.validate(*SETTINGS)
    def _check(self, proposal: Any) -> Any:
        """Return the value of a setting if a comparison can be made with it. Raises: ConfigurationError."""
        name = proposal["trait"].name
        choice = self._choice.changed(name, proposal["value"])
        if choice != self._choice:
            choice.comparison(self._engine.settings)
        self._choice = choice
        return getattr(choice, name)

    def _answer(self, _: Any, message: dict[str, Any], __: Any) -> None:
        """Do what a page asks for: {"set": name, "to": value, "id": …}, or {"do": "run"}."""
        if (do := message.get("do")) in ("run", "stop"):
            (self.run if do == "run" else self.stop)()
            return
        name, value = message["set"], message["to"]
        self._heard = message.get("id", "")
        self._errors.pop(name, None)
        try:
            if name == "strikes":
                self.fault = self._choice.changed(name, value).fault
            elif name in (*SETTINGS, "view", "question", "narrow"):
                setattr(self, name, tuple(value) if name == "alternatives" else value)
        except ConfigurationError as error:
            self._errors[name] = str(error)
        except traitlets.TraitError:
            # Of what a page sends, only a number can be of the wrong kind.
            kind = "a number" if name == "decision_timeout_s" else "a whole number"
            self._errors[name] = f"{name} must be {kind}, not {value!r}"
        finally:
            # A page waits for this before it shows another state.
            self._show_controls()

    def _measure_change(self, change: Any = None) -> None:
        """Measure the settings after one has changed, or say why not."""
        if change is not None:
            self._errors.pop(change.name, None)
        self._show_controls()
        if self.clock == "virtual":
            self.run()
            return
        with self._screen:
            if not self.running:
                self.code_shown, self.status = self._choice.code(), needs_run(self._choice)
            self._mark()

    def _show_controls(self) -> None:
        questions = ["most work after its deadline", *self._choice.questions()]
        self.form = {
            "heard": self._heard,
            "controls": self._choice.controls(self._errors),
            "views": VIEWS,
            "questions": questions,
        }

    def _mark(self) -> None:
        """Say what has been changed since what is on screen was measured."""
        different = "" if self._shown is None else changes(self._shown, self._choice)
        self.note = f"Below are the runs before: {different}." if different else ""

    def _show_progress(self, sweep: PanelRun) -> None:
        """Show a request's progress; called in the thread of the engine."""
        with self._screen:
            if sweep.number != self._engine.number:
                return
            self._sweep = sweep
            self.progress = (len(sweep.measured), max(1, sweep.total))
            is_over = sweep.state != "running"
            if is_over or time.monotonic() - self._said_at >= _SAY_EVERY_S:
                self._said_at = time.monotonic()
                self.status = status_of(sweep)
            if is_over:
                self.error = "" if sweep.error is None else str(sweep.error)
                # Last: whoever waits for it reads the status next, without waiting for this thread.
                self.running = False
        if sweep.measured:
            self._painter.ask(sweep.number)
        if is_over:
            self._hurry.set()

    def _repaint(self, _: Any) -> None:
        """Draw again for another view, question or width."""
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
        drawn, began_at = (self.view, self.question), time.monotonic()
        page = view_html(self.view, sweep.tables, self.question, narrow=self.narrow)
        with self._screen:
            now = time.monotonic()
            self._paint_next_at = now + max(self._frame_every_s, _REST * (now - began_at))
            if sweep.number == self._engine.number and drawn == (self.view, self.question):
                self._shown = sweep.choice
                self.page = page
                self._mark()

    def __repr__(self) -> str:
        return f"TunePanel({self.status})"


@answers_wrong_names
def tune(
    system: Any = None,
    decision_timeout_s: float | None = None,
    *,
    alternatives: Sequence[str] | str | None = None,
    deadline_propagation: PropagationLevel = "own",
    world: World | None = None,
    runs: int | None = None,
    seed: int = DEFAULT_SEED,
    workers: Callable[[], Workers] = warm_processes,
) -> TunePanel:
    """Return a panel of controls and their results, measured in virtual time as the controls move.

        dl.tune()
        dl.tune(dl.graph(my_graph, ["What does yield do?"]), 8)
        dl.tune(dl.research(), alternatives=("A", "B"), world=dl.World(faults="hang"))

    A program, which has no virtual time, is measured on the wall clock when Run is pressed. A graph object, which no
    other process finds, is run in this process.

    Args:
        system: What is under the deadline: a `System`, such as dl.graph(…) or dl.research(), or a graph or a reference
            to one. None means DocMind.
        decision_timeout_s: Seconds. Defaults to that of the system.
        alternatives: Letters, levels or variants. None means those of A, B, C and D that the system can have.
        deadline_propagation: "own" leaves it to the alternative; "on" and "off" set it for those that have the choice.
        world: The simulated services that it meets.
        runs: Number of runs of each alternative. Defaults to 40, on the wall clock to 8.
        seed: Keys the questions, latencies and faults.
        workers: A factory of the processes that compute the runs.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    choice = PanelChoice.of(
        system,
        decision_timeout_s,
        alternatives=alternatives,
        deadline_propagation=deadline_propagation,
        world=world,
        runs=runs,
        seed=seed,
    )
    return TunePanel(choice, workers=workers)
