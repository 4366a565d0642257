"""What a live model does when it is told that little time is left: the same tasks with that line and without it.

    measured = pressure("http://127.0.0.1:8080/v1", "tasks.jsonl")
    measured                      # at each share of the time: hurries, ignores or panics, with intervals
    measured.runs                 # a row for each task, share and repeat
    measured.world                # World(model=ScriptedModel(under_pressure="hurries:0.25"))

A task is a question, what a good answer states, and tools whose results are known beforehand:

    {"question": "…", "gold": ["…"], "tools": {"look_up": "its result", "check": "its result"}}

A change is (with − without) / the larger of both: −0.5 for half as much, 0.5 for twice as much. So it is bounded, as a
difference of qualities is, and its interval needs no assumption. The tasks are what is independent: runs of one task
are averaged.
"""

from __future__ import annotations

import functools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.progress import Progress, shows_progress
from docmind_lab.core.settings import Settings
from docmind_lab.core.text import count_of, join_names
from docmind_lab.core.time_policies import time_left_line
from docmind_lab.experiments.probe.truth import ProbeCall, Target, target_of
from docmind_lab.experiments.world_options import ScriptedModel, World
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.services.scripted_model.conversation import message_text
from docmind_lab.services.scripted_model.tokens import count_tokens
from docmind_lab.services.scripted_model.variation import PressureKind
from docmind_lab.statistics.interval import Interval
from docmind_lab.statistics.means import bounded_mean_interval
from docmind_lab.systems.base.documents.library import handbook
from docmind_lab.systems.base.questions import load_questions
from docmind_lab.systems.own.agents import Agent, agent_graph, as_question
from docmind_lab.systems.own.inputs import GraphInput, Inputs, read_inputs, share_of_gold

MARGIN: Final = 0.2
"""A change that does not matter: a fifth."""
LEAST_TASKS: Final = 17
"""With fewer tasks no interval is within the margin, even if nothing changed in any of them."""
_LIMIT_S: Final = 20.0  # that the line names; nothing enforces it
# Gold is found by its words, so answers are to be quotations.
_SYSTEM: Final = "Answer the question. Quote what the tools return, if there are any."
_QUERY: Final = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
# So many in a row whose requests fail: the endpoint is down, or refuses more.
_MOST_FAILURES: Final = 3


@dataclass
class TaskRun:
    """One task, done once.

    share: of the time that the prompt said was left; NaN for no line. repeat: from 1 on. requests: that were sent.
    quality: of the answer, the share of its gold; 0 for none. failure: of the endpoint, and not of the model.
    """

    share: float
    task: str
    repeat: int
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    quality: float = 0.0
    failure: str = ""


# ---- what follows from the runs


class AtShare(NamedTuple):
    """What a model does with a share of the time left.

    verdict: hurries (fewer requests or tokens, answers as good), ignores (neither changes by more than the margin),
    panics (answers are worse), or unclear. changes: of output_tokens and requests, as the module says, and the
    difference in quality. tasks: that were done in both ways. note: why it is unclear.
    """

    share: float
    verdict: PressureKind | Literal["unclear"]
    changes: Mapping[str, Interval]
    tasks: int
    note: str

    @property
    def cells(self) -> dict[str, Any]:
        """The row of a table."""
        changes = {
            name.replace("_", " "): f"{each.estimate:+.0%} [{each.low:+.0%}, {each.high:+.0%}]"
            for name, each in self.changes.items()
        }
        return {"time left": f"{self.share:.0%}", "the model": self.verdict, **changes, "tasks": self.tasks}


@dataclass(frozen=True, repr=False)
class Pressure(MakesFinding):
    """What a model does when it is told that little time is left.

    Args:
        model: Its name.
        results: The tasks as they were done, in order.
        note: Why some were left out; empty where all were done.
    """

    model: str
    results: tuple[TaskRun, ...]
    note: str = ""

    @property
    def runs(self) -> pd.DataFrame:
        """A row for each task, share and repeat; the columns are the fields of `TaskRun`."""
        return pd.DataFrame([asdict(run) for run in self.results])

    def at(self, share: float) -> AtShare:
        """Return what the model does with a share of the time left. Raises: ConfigurationError for one not measured."""
        both = self._pairs
        both = both[both["share"] == share]
        if both.empty:
            raise ConfigurationError(f"share {share:g}: no task was done with it and without the line; see `runs`")
        means = both.groupby("task").mean(numeric_only=True)
        changes = {}
        for name in ("output_tokens", "requests", "quality"):
            told, calm = means[name], means[f"{name}_calm"]
            # Where nothing was generated or sent in either, nothing changed.
            whole = 1.0 if name == "quality" else np.maximum(np.maximum(told, calm), 1e-9)
            change = np.asarray((told - calm) / whole, dtype="float64")
            changes[name] = bounded_mean_interval(change, least=-1.0, most=1.0)
        verdict, note = _verdict(len(means), changes)
        return AtShare(share, verdict, changes, len(means), note)

    @property
    def _pairs(self) -> pd.DataFrame:
        """A row for each task, repeat and share that was done with the line and without; one half says nothing."""
        done = self.runs.query("failure == ''")
        told, calm = done[done["share"].notna()], done[done["share"].isna()]
        return told.merge(calm.drop(columns="share"), on=["task", "repeat"], suffixes=("", "_calm"))

    @property
    def table(self) -> tuple[AtShare, ...]:
        """What it does at each share with which tasks were done, from the largest on."""
        return tuple(self.at(share) for share in sorted(self._pairs["share"].unique(), reverse=True))

    @property
    def habit(self) -> str:
        """What it does, as the simulated model has it: the worst, from the largest share on at which it does that.

        Raises: ConfigurationError where that is not shown.
        """
        rows = self.table
        for kind in ("panics", "hurries"):
            if row := next((row for row in rows if row.verdict == kind), None):
                return f"{kind}:{row.share:g}"
        if unclear := [row for row in rows if row.verdict == "unclear"]:
            shares = join_names([f"{row.share:g}" for row in unclear])
            raise ConfigurationError(f"what {self.model} does at {shares} of the time is unclear: {unclear[0].note}")
        return "ignores"

    @property
    def world(self) -> World:
        """A world whose simulated model does what this one does. Raises: as `habit`."""
        return World(model=ScriptedModel(under_pressure=self.habit))

    def finding(self) -> Finding:
        """Return a row for each share, what it comes to, and what it cost."""
        rows, runs = self.table, self.runs
        frame = pd.DataFrame([row.cells for row in rows])
        requests, read, written = (int(runs[name].sum()) for name in ("requests", "input_tokens", "output_tokens"))
        failed = int((runs["failure"] != "").sum())
        try:
            meaning = f"As a simulated model: ScriptedModel(under_pressure={self.habit!r})."
        except ConfigurationError:
            meaning = "What it does is not shown, so no simulated model can do the same."
        if {"hurries", "panics"} <= {row.verdict for row in rows}:
            meaning += " It also hurries at some share, which that leaves out."
        notes = [
            *(f"{row.share:g} of the time: {row.note}." for row in rows if row.note),
            f"The endpoint failed in {count_of(failed, 'run')}, left out here." if failed else "",
            f"{self.note}." if self.note else "",
            f"Sent: {count_of(requests, 'request')}, {read:,} tokens read and {written:,} generated.",
        ]
        title = f"{self.model}, when it is told how much time is left"
        numbers = {"model": self.model, "requests": requests, "tokens_read": read, "tokens_generated": written}
        return Finding((title, frame, meaning, *filter(None, notes)), numbers, {"shares": frame, "runs": runs})


def _verdict(tasks: int, changes: Mapping[str, Interval]) -> tuple[PressureKind | Literal["unclear"], str]:
    """Return what follows from the changes, and why nothing does."""
    quality, work = changes["quality"], (changes["output_tokens"], changes["requests"])
    small = [change.low > -MARGIN and change.high < MARGIN for change in work]
    if quality.high < 0:
        return "panics", ""
    if tasks < LEAST_TASKS:
        return "unclear", f"{count_of(tasks, 'task')} cannot show it; give it {LEAST_TASKS} or more"
    if quality.low <= -MARGIN:
        return "unclear", f"{tasks} tasks do not show whether answers stay as good; give it more tasks or repeats"
    if any(change.high < 0 and not is_small for change, is_small in zip(work, small, strict=True)):
        return "hurries", ""
    if all(small):
        return "ignores", ""
    return "unclear", f"{tasks} tasks do not show whether it does with less; give it more tasks or repeats"


# ---- the measurement


@answers_wrong_names
@shows_progress("tasks", "asking")
def pressure(
    endpoint: str,
    tasks: Inputs | None = None,
    *,
    shares: Sequence[float] = (0.5, 0.25, 0.1),
    repeats: int = 1,
    model: str = "",
    max_tokens: int = 512,
    max_requests: int | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Pressure:
    """Measure what a model does when its prompt says that little time is left.

    A task takes, for each share and once more, at the most a request for each of its tools and two.

    Args:
        endpoint: Address of an OpenAI-compatible server, as "http://127.0.0.1:8080/v1".
        tasks: A list, or a file with one in each line; None for `handbook_tasks`.
        shares: Shares of the time that are said to be left, each above 0 and below 1.
        repeats: Times that each task is done with each share, and without the line.
        model: The model that is asked; empty for the server's first.
        max_tokens: Most tokens of one answer.
        max_requests: The most that may be sent; where the tasks could take more, nothing is. None for no limit.
        seed: Of the order of tasks and shares.
        settings: They say which endpoints may be reached, and have the key; those of the environment when left out.
        progress: Called with (task runs done, all of them). None draws a bar, from 2 s on.

    Raises:
        ConfigurationError: An argument cannot be used, or the endpoint may not be reached.
        ServiceError: The endpoint cannot be reached, or refuses the first request.
    """
    if not shares or not all(0 < share < 1 for share in shares) or len(set(shares)) < len(shares):
        raise ConfigurationError(f"shares must be numbers above 0 and below 1, each once, such as 0.25, not {shares!r}")
    if repeats < 1 or max_tokens < 1:
        raise ConfigurationError(f"repeats and max_tokens must be 1 or more, not {repeats} and {max_tokens}")
    items = read_tasks(handbook_tasks() if tasks is None else tasks)
    times, rng = repeats * (1 + len(shares)), random.Random(seed)
    most = times * sum(map(_most_requests, items))
    if max_requests is not None and most > max_requests:
        raise ConfigurationError(
            f"up to {most:,} requests may be needed, but max_requests is {max_requests:,}; give fewer tasks or shares"
        )
    target = target_of(endpoint, model, settings or Settings(), name="endpoint")
    rows: list[TaskRun] = []
    failures = 0
    for repeat, task in [(repeat, task) for repeat in range(repeats) for task in rng.sample(items, len(items))]:
        # In another order each time: a server that becomes slower must not look like a habit.
        for share in rng.sample((math.nan, *shares), 1 + len(shares)):
            rows.append(_run(target, task, share, repeat + 1, max_tokens))
            failures = failures + 1 if rows[-1].failure else 0
            if len(rows) == failures:
                raise ServiceError(f"{endpoint} did not answer the first request: {rows[-1].failure}")
            if progress is not None:
                progress(len(rows), times * len(items))
            if failures == _MOST_FAILURES:
                note = f"It ended when {failures} in a row had failed: {rows[-1].failure}"
                return Pressure(target.model, tuple(rows), note)
    return Pressure(target.model, tuple(rows))


def _run(target: Target, task: GraphInput, share: float, repeat: int, max_tokens: int) -> TaskRun:
    """Do a task once. share: of the time that the prompt says is left; NaN for no line."""
    line = "" if math.isnan(share) else f"\n\n{time_left_line(share * _LIMIT_S, _LIMIT_S)}"
    messages = [{"role": "system", "content": _SYSTEM + line}, {"role": "user", "content": task.given["question"]}]
    functions = [{"name": name, "description": f"{name}.", "parameters": _QUERY} for name in _tools(task)]
    tools = [{"type": "function", "function": function} for function in functions]
    # One after the other, so that a model in a hurry can leave some out.
    offered = {"tools": tools, "parallel_tool_calls": False} if tools else {}
    run = TaskRun(share, task.id, repeat)
    try:
        for _ in range(_most_requests(task)):
            run.requests += 1
            with ProbeCall(target, {"messages": messages, "max_tokens": max_tokens, **offered}, "pressure") as call:
                answer = call.answer()
            message = _note(run, answer, messages)
            calls = message.get("tool_calls") or []
            if not calls:
                text = message_text(message).strip()
                if text:
                    found = share_of_gold(task, text)
                    # A task without gold takes any answer.
                    run.quality = 1.0 if math.isnan(found) else found
                break
            messages += [message, *(_result(task, call) for call in calls)]
    except (ServiceError, ValueError, LookupError, TypeError, AttributeError) as error:
        run.failure = str(error) or type(error).__name__
    return run


def _note(run: TaskRun, answer: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count what an answer has cost, and return the model's message."""
    message: dict[str, Any] = answer["choices"][0]["message"]
    usage = answer.get("usage") or {}
    text = message_text(message) + "".join(str(call["function"]) for call in message.get("tool_calls") or ())
    run.output_tokens += int(usage.get("completion_tokens") or count_tokens(text))
    run.input_tokens += int(usage.get("prompt_tokens") or sum(count_tokens(message_text(one)) for one in messages))
    return message


def _result(task: GraphInput, call: Mapping[str, Any]) -> dict[str, Any]:
    result = _tools(task).get(str(call["function"]["name"]), "There is no such tool.")
    return {"role": "tool", "tool_call_id": str(call.get("id", "")), "content": result}


# ---- tasks


def read_tasks(tasks: Inputs) -> tuple[GraphInput, ...]:
    """Read tasks from a list or a file. Raises: ConfigurationError, which names the item and the field."""
    asking = Agent("a task", lambda question, tools=None: question, is_async=False)
    items = read_inputs(agent_graph(asking), tasks, convert=functools.partial(as_question, asking))
    for task in items:
        tools: Any = _tools(task)
        if not isinstance(tools, Mapping) or not all(
            re.fullmatch("[A-Za-z0-9_-]{1,64}", str(name)) and isinstance(result, str) for name, result in tools.items()
        ):
            raise ConfigurationError(
                f'task {task.id}: tools must be names with the text that each returns, such as {{"look_up": "…"}}'
            )
    return items


def handbook_tasks(count: int = 24, seed: int = 0) -> list[dict[str, Any]]:
    """Return tasks about the lab's handbook: two of its questions at once, and three tools, of which one is needed.

    count: of tasks, up to 66. seed: which questions go together.
    """
    questions, passages = load_questions(), handbook().chunks
    pairs = [(one, other) for at, one in enumerate(questions) for other in questions[at + 1 :]]
    tasks = []
    for one, other in random.Random(seed).sample(pairs, count):
        gold, topics = (*one.gold_facts, *other.gold_facts), {*one.gold_topics, *other.gold_topics}
        # A passage has line breaks, and a fact has none.
        texts = {each: " ".join(each.text.split()) for each in passages}
        answering = [each for each in passages if each.topic in topics and any(fact in texts[each] for fact in gold)]
        tools = {
            "look_up": "\n\n".join(each.text for each in answering),
            "look_up_related": next(each.text for each in passages if each.topic not in topics),
            "check_sources": f"Passages: {', '.join(each.id for each in answering)}.",
        }
        asked = {"question": f"{one.text} {other.text}", "tools": tools}
        tasks.append({"input": asked, "gold": list(gold), "id": f"{one.id}+{other.id}"})
    return tasks


def _tools(task: GraphInput) -> dict[str, str]:
    """Return what each tool of a task returns, by its name."""
    return (task.given.get("keywords") or {}).get("tools") or {}


def _most_requests(task: GraphInput) -> int:
    """Return how many requests a task is given: one for each tool, one for the answer, and one more."""
    return len(_tools(task)) + 2
