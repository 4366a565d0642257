"""Everything the lint learns before it sets a deadline, and where it then puts the deadline.

Each node is examined with the first input for which it sends a request, and its code with the input for which it takes
longest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from docmind_lab.alternatives.bound import without_wrappers
from docmind_lab.analysis.text import count_of, guessed_shape
from docmind_lab.core.errors import GraphError
from docmind_lab.docmind.graphs.observer import role_of
from docmind_lab.experiments.lint.bench import TrialBench
from docmind_lab.experiments.lint.facts import (
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
from docmind_lab.experiments.lint.observation import length_of
from docmind_lab.experiments.lint.probe import INTERRUPTED, UNTIMED, UNTIMED_ASYNC, Scene, observe_run
from docmind_lab.workloads.own.references import AnyGraph

# Of a stretch that cannot be cut: early enough that most of it is still to come.
_CUT_AFTER = 0.1
# A node that begins after the deadline is reached with this much left, seconds.
_TO_HANG_IN_S = 1.0
# A microsecond: a budget that can be read, and typed.
_DIGITS = 6


@dataclass
class GraphProbe:
    """What the lint knows of a graph before it sets any deadline.

    scenes: by input, alternative and fault: undisturbed, and those whose fault led to a node that nothing else led to.
    with_key: with the deadline handed to the graph, by input, if its key
    is looked for. cannot: the alternative under which it failed, with the run. unprobed: (node, address) of requests
    that no fault kept from being answered. trials: (decision timeout, fault, input) of the runs to be measured under
    each alternative, in order.
    """

    scenes: dict[tuple[str, str, str], Scene] = field(default_factory=dict)
    with_key: dict[str, Scene] = field(default_factory=dict)
    cannot: dict[str, Scene] = field(default_factory=dict)
    facts: dict[str, NodeFacts] = field(default_factory=dict)
    unprobed: list[tuple[str, str]] = field(default_factory=list)
    trials: dict[tuple[float, str, str], None] = field(default_factory=dict)

    def of_input(self, question_id: str, fault: str = "none") -> list[Scene]:
        """Return the sync scene and the async scene of an input, if the graph ran in that mode."""
        wanted = question_id, fault
        return [scene for (asked, _, under), scene in self.scenes.items() if (asked, under) == wanted]

    def under(self, alternative: str, node: str) -> list[Scene]:
        """Return the scenes under an alternative that came to a node."""
        return [scene for (_, of, _), scene in self.scenes.items() if of == alternative and scene.outermost(node)]

    def nodes(self) -> list[str]:
        """Return the nodes that any scene came to."""
        return list(dict.fromkeys(node for scene in self.scenes.values() for node in scene.nodes()))

    def home(self, node: str) -> list[Scene]:
        """Return the scenes of the input that the node is examined with."""
        visiting = [scene for scene in self.scenes.values() if scene.outermost(node)]
        asking = [scene for scene in visiting if scene.seen.sent.get(node)]
        trial = (asking or visiting)[0].trial
        return [scene for scene in self.of_input(trial.question_id, trial.fault) if scene.outermost(node)]


def probe(bench: TrialBench, decision_timeout_s: float, slack_s: float, key: str) -> GraphProbe:
    """Probe a graph without a deadline. key: the deadline's key in its state; empty if it has none.

    Raises: GraphError for a graph that fails without any deadline, sync and async.
    """
    probed = GraphProbe()
    for question in bench.questions():
        for alternative in (UNTIMED, UNTIMED_ASYNC):
            scene = observe_run(bench, alternative, question.id)
            if scene.failed:
                probed.cannot.setdefault(alternative, scene)
            else:
                probed.scenes[question.id, alternative, "none"] = scene
        scenes = probed.of_input(question.id)
        if not scenes and probed.cannot[UNTIMED].failed == INTERRUPTED:
            raise GraphError(_interrupted(probed.cannot[UNTIMED], question.id))
        if not scenes:
            ways = {way: scene.failure_in_words() for way, scene in probed.cannot.items()}
            sync, on_loop = ways[UNTIMED], ways[UNTIMED_ASYNC]
            said = sync if sync == on_loop else f"{sync} when it runs sync, and {on_loop} when it runs async"
            raise GraphError(
                f"the graph fails without any deadline, with {said} (input {question.id}); have it answer its inputs "
                f"first{_guesses(probed.cannot.values())}"
            )
        probed.trials[decision_timeout_s, "none", question.id] = None
        in_mode = "A" if scenes[0].trial.alternative == UNTIMED else "E"
        probed.with_key[question.id] = observe_run(bench, in_mode, question.id, key=key)
    # Failing requests may lead to further nodes, such as an error handler, with requests of their own.
    while more := [node for node in probed.nodes() if node not in probed.facts]:
        probed.facts[more[0]] = _facts(bench, probed, more[0], decision_timeout_s, slack_s, key)
    for strike in strikes_of(probed.scenes.values(), ""):
        _strike(bench, probed, "", strike, decision_timeout_s, slack_s)
    return probed


def _guesses(scenes: Iterable[Scene]) -> str:
    """Return where the simulated model guessed what a node wants, which may be why it failed; empty if nowhere."""
    made_up = [event for scene in scenes for event in scene.measured.events if event.event == "answer_made_up"]
    nodes = dict.fromkeys(
        name
        for event in made_up
        for kind, _, name in [json.loads(event.detail)["of"].partition(" ")]
        if kind == "shape"
    )
    return "".join(f"; {guessed_shape(node)}" for node in nodes).rstrip(".")


def _interrupted(scene: Scene, question_id: str) -> str:
    answers = sum(event.event == "interrupt_answered" for event in scene.measured.events)
    place = f"the graph stops at {INTERRUPTED} (input {question_id}), to wait for a person"
    options = '--resume (resume=[...]), or "resume" in the input'
    if answers:
        return f"{place}, after {count_of(answers, 'answer')}; give one more: {options}"
    return f"{place}; answer it: {options}"


def _facts(
    bench: TrialBench, probed: GraphProbe, node: str, decision_timeout_s: float, slack_s: float, key: str
) -> NodeFacts:
    """Return the facts of a node, and add its runs under a deadline to `probed.trials`."""
    first = probed.home(node)[0]
    question_id = first.trial.question_id
    timeouts_s = timeouts_of(first, node)
    retries, worst, trickled = None, list[WorstCase](), None
    for strike in strikes_of(probed.scenes.values(), node):
        of_strike, never = _strike(bench, probed, node, strike, decision_timeout_s, slack_s)
        retries = retries or of_strike
        worst += [never] if never is not None else []
        like = probed.of_input(strike.question_id, strike.after)[0]
        trickled = trickled or (trickled_of(bench, like, node, strike, timeouts_s[0]) if timeouts_s else None)
    for alternative in (UNTIMED, UNTIMED_ASYNC):
        if found := probed.under(alternative, node):
            _add_trials(probed, max(found, key=lambda scene: length_of(scene.longest_code(node))), node, slack_s)
    under_loop = probed.under(UNTIMED_ASYNC, node)
    with_key = [scene for scene in probed.with_key.values() if scene.outermost(node)]
    return NodeFacts(
        node=node,
        mode=_mode(bench.graph, under_loop, node),
        calls=calls_in(first, node),
        timeouts_s=timeouts_s,
        capped=capped_in(probed.with_key[question_id], node),
        code_s=max(length_of(scene.longest_code(node)) for scene in probed.scenes.values()),
        retries=retries,
        worst_case=max(worst, key=lambda case: case.took_s, default=None),
        trickled=trickled,
        has_key=not any(scene.without_key(node) for scene in with_key) if key and with_key else None,
    )


def _strike(
    bench: TrialBench, probed: GraphProbe, node: str, strike: Strike, decision_timeout_s: float, slack_s: float
) -> tuple[RetryFacts | None, WorstCase | None]:
    """Measure requests that fail, and that are never answered; add the runs under a deadline to `probed.trials`."""
    scenes = probed.of_input(strike.question_id, strike.after)
    failing = [observe_run(bench, scene.trial.alternative, strike.question_id, fault=strike.fail) for scene in scenes]
    never = worst_case_of(bench, scenes[0], node, strike.hang)
    if never is None and (node, strike.address) not in probed.unprobed:
        probed.unprobed.append((node, strike.address))
    within_s = max(decision_timeout_s, round(strike.at_s + _TO_HANG_IN_S, _DIGITS))
    for fault in (strike.hang, strike.trickle(min(within_s / 4, SLOWEST_GAP_S))):
        probed.trials[within_s, fault, strike.question_id] = None
    probed.trials[decision_timeout_s, strike.fail, strike.question_id] = None
    known = probed.nodes()
    if any(other not in known for scene in failing for other in scene.nodes()):
        probed.scenes |= {(strike.question_id, scene.trial.alternative, strike.fail): scene for scene in failing}
    if node:
        for scene in failing:
            _add_trials(probed, scene, node, slack_s)
    return retries_of(bench, scenes[0], failing[0], node) if node else None, never


def _mode(graph: AnyGraph, under_loop: list[Scene], node: str) -> str:
    seen = {scene.mode(node) for scene in under_loop}
    if "sync" in seen and not _is_sync(graph, node):
        seen = seen - {"sync"} | {"sync inside"}
    modes = ("blocking async", "sync", "sync inside", "async", "takes no time")
    # With one input a node may do nothing that shows its mode.
    return next((mode for mode in modes if mode in seen), "sync only")


def _is_sync(graph: AnyGraph, role: str) -> bool:
    """Whether a node is a plain function, which an event loop puts into a thread as a whole."""
    made = [without_wrappers(node.bound) for name, node in graph.nodes.items() if role_of(name) == role]
    forms = [(getattr(each, "func", None), getattr(each, "afunc", None)) for each in made]
    # LangGraph gives a plain function an async form that runs it in a thread.
    return any(plain and (form is None or getattr(form, "__wrapped__", None) is plain) for plain, form in forms)


def _add_trials(probed: GraphProbe, scene: Scene, node: str, slack_s: float) -> None:
    """Add a trial for each of the node's stretches whose rest after the deadline would exceed the slack."""
    for stretch in scene.stretches(node):
        if length_of(stretch) * (1 - _CUT_AFTER) > slack_s:
            cut_at_s = round(stretch[0] + length_of(stretch) * _CUT_AFTER, _DIGITS)
            probed.trials[cut_at_s, scene.trial.fault, scene.trial.question_id] = None
