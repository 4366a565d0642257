"""Everything the lint learns before it sets a deadline, and where it then puts the deadline.

Each node is examined with the first input for which it sends a request, and its code with the input for which it takes
longest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from docmind_lab.alternatives.bound import without_wrappers
from docmind_lab.core.errors import GraphError
from docmind_lab.core.text import count_of, guessed_shape
from docmind_lab.experiments.doctor.doctor_bench import TrialBench
from docmind_lab.experiments.doctor.facts import (
    SLOWEST_GAP_S,
    NodeFacts,
    RetryFacts,
    Strike,
    WorstCase,
    calls_in,
    capped_in,
    retries_of,
    strikes_of,
    timeouts_of,
    trickled_of,
    worst_case_of,
)
from docmind_lab.experiments.doctor.late_runs import length_of
from docmind_lab.experiments.doctor.scenes import INTERRUPTED, UNTIMED, UNTIMED_ASYNC, Scene, observe_run
from docmind_lab.systems.base.observer import role_of
from docmind_lab.systems.own.references import AnyGraph

# Of a stretch that cannot be cut: early enough that most of it is still to come.
_CUT_AFTER = 0.1
# A node that begins after the deadline is reached with this much left, seconds.
_TO_HANG_IN_S = 1.0
# A microsecond: a budget that can be read, and typed.
_DIGITS = 6


class GraphProbe:
    """What the lint knows of a graph before it sets any deadline.

    key: the deadline's key in the graph's state; empty if it has none. scenes: by input, alternative and fault:
    undisturbed, and those whose fault led to a node that nothing else led to. with_key: with the deadline handed to the
    graph, by input. cannot: the alternative under which it failed, with the run. unprobed: (node, address) of requests
    that no fault kept from being answered. trials: (decision timeout, fault, input) of the runs to be measured under
    each alternative, in order.

    Raises: GraphError for a graph that fails without any deadline, sync and async.
    """

    def __init__(self, bench: TrialBench, decision_timeout_s: float, slack_s: float, key: str) -> None:
        self._bench, self._decision_timeout_s, self._slack_s, self._key = bench, decision_timeout_s, slack_s, key
        self.scenes: dict[tuple[str, str, str], Scene] = {}
        self.with_key: dict[str, Scene] = {}
        self.cannot: dict[str, Scene] = {}
        self.facts: dict[str, NodeFacts] = {}
        self.unprobed: list[tuple[str, str]] = []
        self.trials: dict[tuple[float, str, str], None] = {}
        for question in bench.questions():
            self._see_undisturbed(question.id)
        # Failing requests may lead to further nodes, such as an error handler, with requests of their own.
        while more := [node for node in self.nodes() if node not in self.facts]:
            self.facts[more[0]] = self._facts(more[0])
        self._note_unprobed("", [(one, self._strike("", one)[1]) for one in strikes_of(self.scenes.values(), "")])

    def nodes(self) -> list[str]:
        """Return the nodes that any scene came to."""
        return list(dict.fromkeys(node for scene in self.scenes.values() for node in scene.nodes()))

    def _of_input(self, question_id: str, fault: str = "none") -> list[Scene]:
        """Return the sync scene and the async scene of an input, if the graph ran in that mode."""
        wanted = question_id, fault
        return [scene for (asked, _, under), scene in self.scenes.items() if (asked, under) == wanted]

    def _under(self, alternative: str, node: str) -> list[Scene]:
        """Return the scenes under an alternative that came to a node."""
        return [scene for (_, of, _), scene in self.scenes.items() if of == alternative and scene.outermost(node)]

    def _home(self, node: str) -> Scene:
        """Return a scene of the input that the node is examined with."""
        visiting = [scene for scene in self.scenes.values() if scene.outermost(node)]
        asking = [scene for scene in visiting if scene.seen.sent.get(node)]
        trial = (asking or visiting)[0].trial
        return next(scene for scene in self._of_input(trial.question_id, trial.fault) if scene.outermost(node))

    def _see_undisturbed(self, question_id: str) -> None:
        scenes = [*undisturbed(self._bench, question_id, self.cannot)]
        self.scenes |= {(question_id, scene.trial.alternative, "none"): scene for scene in scenes}
        self.trials[self._decision_timeout_s, "none", question_id] = None
        in_mode = "A" if scenes[0].trial.alternative == UNTIMED else "E"
        self.with_key[question_id] = observe_run(self._bench, in_mode, question_id, key=self._key)

    def _facts(self, node: str) -> NodeFacts:
        """Return the facts of a node, and add its runs under a deadline to the trials."""
        first = self._home(node)
        timeouts_s = timeouts_of(first, node)
        retries, worst, trickled, failing = None, list[tuple[Strike, WorstCase | None]](), None, list[Scene]()
        for strike in strikes_of(self.scenes.values(), node):
            of_strike, never, failed = self._strike(node, strike)
            retries, failing = retries or of_strike, failing + failed
            worst.append((strike, never))
            if timeouts_s and trickled is None:
                like = self._of_input(strike.question_id, strike.after)[0]
                trickled = trickled_of(self._bench, like, node, strike, timeouts_s[0])
        self._note_unprobed(node, worst)
        under_loop = self._under(UNTIMED_ASYNC, node)
        for scenes in (self._under(UNTIMED, node), under_loop):
            if scenes:
                self._add_trials(max(scenes, key=lambda scene: length_of(scene.longest_code(node))), node)
        with_key = [scene for scene in self.with_key.values() if scene.outermost(node)]
        return NodeFacts(
            node=node,
            mode=_mode(self._bench.graph, under_loop, failing, node, runs_on_loop=UNTIMED_ASYNC not in self.cannot),
            calls=calls_in(first, node),
            timeouts_s=timeouts_s,
            capped=capped_in(self.with_key[first.trial.question_id], node),
            code_s=max(length_of(scene.longest_code(node)) for scene in self.scenes.values()),
            retries=retries,
            worst_case=max(filter(None, (case for _, case in worst)), key=lambda case: case.took_s, default=None),
            trickled=trickled,
            has_key=not any(scene.without_key(node) for scene in with_key) if self._key and with_key else None,
        )

    def _strike(self, node: str, strike: Strike) -> tuple[RetryFacts | None, WorstCase | None, list[Scene]]:
        """Measure requests that fail, and that are never answered; add the runs under a deadline to the trials.

        Returns also the runs that fail.
        """
        bench, asked = self._bench, strike.question_id
        scenes = self._of_input(asked, strike.after)
        failing = [observe_run(bench, scene.trial.alternative, asked, fault=strike.fault("fail")) for scene in scenes]
        never = worst_case_of(bench, scenes[0], node, strike.fault("hang"))
        within_s = max(self._decision_timeout_s, round(strike.at_s + _TO_HANG_IN_S, _DIGITS))
        for fault in (strike.fault("hang"), strike.fault("trickle", min(within_s / 4, SLOWEST_GAP_S))):
            self.trials[within_s, fault, asked] = None
        self.trials[self._decision_timeout_s, strike.fault("fail"), asked] = None
        nodes = self.nodes()
        if any(other not in nodes for scene in failing for other in scene.nodes()):
            self.scenes |= {(asked, scene.trial.alternative, strike.fault("fail")): scene for scene in failing}
        if not node:
            return None, never, failing
        for scene in failing:
            self._add_trials(scene, node)
        return retries_of(bench, scenes[0], failing[0], node), never, failing

    def _note_unprobed(self, node: str, struck: list[tuple[Strike, WorstCase | None]]) -> None:
        """Note the addresses of a node that no hang left without an answer, such as that of an answer that is kept."""
        sent = [one for scene in self.scenes.values() for one in scene.seen.sent.get(node, {}).values()]
        asked = dict.fromkeys(one.address for one in sent)
        for strike, never in struck:
            for address in () if never is None else never.addresses:
                # One that no undisturbed run asked, such as that of a new id, is in the place of what was to be struck.
                asked.pop(address if address in {one.address for one in sent} else strike.address, None)
        self.unprobed += [(node, address) for address in asked]

    def _add_trials(self, scene: Scene, node: str) -> None:
        """Add a trial for each of the node's stretches whose rest after the deadline would exceed the slack."""
        for stretch in scene.stretches(node):
            if length_of(stretch) * (1 - _CUT_AFTER) > self._slack_s:
                cut_at_s = round(stretch[0] + length_of(stretch) * _CUT_AFTER, _DIGITS)
                self.trials[cut_at_s, scene.trial.fault, scene.trial.question_id] = None


def undisturbed(bench: TrialBench, question_id: str, cannot: dict[str, Scene]) -> Iterator[Scene]:
    """Yield the run of an input without a fault, sync and then async, where the graph does not fail.

    cannot: gets the first run that fails in each of the two modes. Raises: GraphError if this input fails in both.
    """
    failed = 0
    for alternative in (UNTIMED, UNTIMED_ASYNC):
        scene = observe_run(bench, alternative, question_id)
        if scene.failed:
            failed += 1
            cannot.setdefault(alternative, scene)
        else:
            yield scene
    if failed == len((UNTIMED, UNTIMED_ASYNC)):
        raise GraphError(_failure_of(cannot, question_id))


def _failure_of(cannot: dict[str, Scene], question_id: str) -> str:
    """Return why a graph that failed sync and async has no verdict, and what to do."""
    if cannot[UNTIMED].failed == INTERRUPTED:
        answers = sum(event.event == "interrupt_answered" for event in cannot[UNTIMED].measured.events)
        place = f"the graph stops at {INTERRUPTED} (input {question_id}), to wait for a person"
        options = '--resume (resume=[...]), or "resume" beside "input" in its line'
        if answers:
            return f"{place}, after {count_of(answers, 'answer')}; give one more: {options}"
        return f"{place}; answer it: {options}"
    sync, on_loop = (cannot[alternative].failure_in_words() for alternative in (UNTIMED, UNTIMED_ASYNC))
    failures = sync if sync == on_loop else f"{sync} when it runs sync, and {on_loop} when it runs async"
    return (
        f"the graph fails without any deadline, with {failures} (input {question_id}); have it answer its inputs "
        f"first{_guesses(cannot.values())}"
    )


def _guesses(scenes: Iterable[Scene]) -> str:
    """Return where the simulated model guessed what a node wants, which may be why it failed; empty if nowhere."""
    made_up = [event for scene in scenes for event in scene.measured.events if event.event == "answer_made_up"]
    parts = (event.detail["of"].partition(" ") for event in made_up)
    nodes = dict.fromkeys(name for kind, _, name in parts if kind == "shape")
    return "".join(f"; {guessed_shape(node)}" for node in nodes).rstrip(".")


def _mode(graph: AnyGraph, under_loop: list[Scene], failing: list[Scene], node: str, *, runs_on_loop: bool) -> str:
    seen = {scene.mode(node) for scene in under_loop}
    # What blocks the loop once a request has failed blocks it.
    seen |= {mode for scene in failing if (mode := scene.mode(node)) == "blocking async"}
    if "sync" in seen and not _is_sync(graph, node):
        seen = seen - {"sync"} | {"sync inside"}
    modes = ("blocking async", "sync", "sync inside", "async", "takes no time")
    # With one input a node may do nothing that shows its mode.
    return next((mode for mode in modes if mode in seen), "not seen" if runs_on_loop else "sync only")


def _is_sync(graph: AnyGraph, role: str) -> bool:
    """Whether a node is a plain function, which an event loop puts into a thread as a whole."""
    made: list[Any] = [without_wrappers(node.bound) for name, node in graph.nodes.items() if role_of(name) == role]
    forms = [(getattr(each, "func", None), getattr(each, "afunc", None)) for each in made]
    # LangGraph gives a plain function an async form that runs it in a thread.
    return any(plain and (form is None or getattr(form, "__wrapped__", None) is plain) for plain, form in forms)
