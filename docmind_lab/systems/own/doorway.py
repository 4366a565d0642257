"""The adapter between an alternative and a user's graph.

In: the deadline, which an alternative puts into input and configuration, is taken out of the input, where a foreign
schema knows nothing of it, and put in force as context; a key of the graph's own that asks for it gets it. Out: states
in the shape in which alternatives read them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import convert_to_messages
from langgraph.types import Command

from docmind_lab.alternatives.base import INTERRUPT, FreeState
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.holds import Hold, current_hold, hold_scope
from docmind_lab.systems.own.agents import STOPPED
from docmind_lab.systems.own.inputs import BOXED
from docmind_lab.systems.own.own_requests import RunObserver

_ERROR_KEY = re.compile(r"(^|_)(errors?|exceptions?)(_(message|msg|text|detail)s?)?$", re.IGNORECASE)


class RunDoorway:
    """The adapter for one run.

    state_key: the key of the graph's input for the deadline; empty for none. resume: what the run's interrupts are
    answered with, in their order; the one after the last is the end of the run. outputs: the keys of the state that the
    graph declares as its output.
    """

    def __init__(
        self, observer: RunObserver, state_key: str = "", resume: Sequence[Any] = (), outputs: Sequence[str] = ()
    ) -> None:
        self.observer, self.state_key, self.resume, self.outputs = observer, state_key, resume, outputs

    def stream(
        self, inner: Callable[..., Iterator[Any]], config: Any, inputs: Any, *rest: Any, **options: Any
    ) -> Iterator[Any]:
        """Stream from the graph with the deadline in force, and answer its interrupts."""
        with self._deadline_in_force(config, rest, options):
            passage = _Passage(self, inputs)
            while passage.goes_on():
                for chunk in inner(passage.input, *rest, **options):
                    yield from passage.chunks_for_caller(chunk)

    async def astream(
        self, inner: Callable[..., AsyncIterator[Any]], config: Any, inputs: Any, *rest: Any, **options: Any
    ) -> AsyncIterator[Any]:
        """`stream`, as an async generator."""
        with self._deadline_in_force(config, rest, options):
            passage = _Passage(self, inputs)
            while passage.goes_on():
                async for chunk in inner(passage.input, *rest, **options):
                    for each in passage.chunks_for_caller(chunk):
                        yield each

    def readable_state(self, state: Any) -> FreeState:
        """Convert a state of the graph to the form that alternatives read."""
        return free_state(state)

    @contextlib.contextmanager
    def _deadline_in_force(self, config: Any, rest: tuple[Any, ...], options: Mapping[str, Any]) -> Iterator[None]:
        observer, hold = self.observer, current_hold()
        if hold is not None and (in_force := hold.in_force) is not None:
            # As production runs it: the deadline comes in a hold, and nothing else holds the run's requests.
            observer.is_enforced = True
            observer.let_deadline_travel(in_force.at_s)
            yield
            return
        own_config = options.get("config") or (rest[0] if rest else None)
        instants = map(_deadline_instant, (own_config, config))
        at_s = next((instant for instant in instants if instant is not None), None)
        if at_s is None:
            yield
            return
        deadline, policy = observer.let_deadline_travel(at_s)
        own = Hold(deadline, policy, label="graph", every_client=True)
        scope = hold_scope(own)
        scope.__enter__()
        try:
            yield
        finally:
            # A stream that is dropped half way ends in a context in which this was never set. What the run has left
            # behind is held all the same.
            if current_hold() is own:
                scope.__exit__(None, None, None)

    def input(self, inputs: Any) -> Any:
        """Return the graph's input without the lab's key of the deadline, and with the graph's own."""
        if isinstance(inputs, Command) and isinstance(inputs.update, Mapping) and DEADLINE_KEY in inputs.update:
            update = self._with_own_key(inputs.update)
            return Command(update=update) if update else None
        if not isinstance(inputs, Mapping):
            return inputs
        result = self._with_own_key(inputs) if DEADLINE_KEY in inputs else inputs
        return result.get(BOXED, result)

    def _with_own_key(self, values: Mapping[str, Any]) -> dict[str, Any]:
        rest = {name: value for name, value in values.items() if name != DEADLINE_KEY}
        return {**rest, self.state_key: values[DEADLINE_KEY]} if self.state_key else rest


class _Passage:
    """A run on its way through the graph: its interrupts are answered, and its last state is looked into.

    input: what the graph is begun with, or goes on with.
    """

    def __init__(self, doorway: RunDoorway, inputs: Any) -> None:
        self.input = doorway.input(inputs)
        self._inputs = inputs if isinstance(inputs, Mapping) else {}
        self._answers, self._outputs = list(doorway.resume), doorway.outputs
        self._recorder = doorway.observer.recorder
        self._has_begun = False
        self._waiting: dict[str, None] | None = None
        self._state: Any = {}

    def chunks_for_caller(self, chunk: Any) -> list[Any]:
        """Return what the alternative is shown of a chunk: nothing where an interrupt is to be answered."""
        if isinstance(chunk, tuple) and len(chunk) == 2 and chunk[0] == "values":
            self._state = chunk[1]
        content = chunk[-1] if isinstance(chunk, tuple) else chunk
        if self._answers and isinstance(content, Mapping) and INTERRUPT in content:
            ids = [str(getattr(each, "id", "")) for each in content[INTERRUPT] or ()]
            self._waiting = {**(self._waiting or {}), **dict.fromkeys(ids)}
            return []
        return [chunk]

    def goes_on(self) -> bool:
        """Whether the graph is to be run, for the first time or with an answer; at its end, record its last state."""
        if self._has_begun and self._waiting is None:
            self._record_last_state()
            return False
        if self._has_begun:
            self.input = self._answer()
        self._has_begun = True
        return True

    def _answer(self) -> Command[Any] | None:
        """Return an answer to each interrupt that the graph waits at, in their order.

        The last answer there is goes to all that are left: "yes" approves every tool of a step.
        """
        ids, self._waiting = list(self._waiting or ()), None
        # A breakpoint asks nothing, and takes an answer all the same.
        values = [self._answers.pop(0) for _ in range(min(max(1, len(ids)), len(self._answers)))]
        self._recorder.event("interrupt_answered", interrupts=len(ids), left=len(self._answers))
        if not ids:
            return None
        answers = [*values, *[values[-1]] * (len(ids) - len(values))]
        return Command(resume=answers[0] if len(ids) == 1 else dict(zip(ids, answers, strict=True)))

    def _record_last_state(self) -> None:
        """Record the keys of errors that the input did not hold, and of the declared outputs that have no value."""
        values = self._state if isinstance(self._state, Mapping) else getattr(self._state, "__dict__", {})
        for key, value in values.items():
            # The truth of other values, such as a table of pandas, may be an error.
            says_one = isinstance(value, str | Sequence | Mapping | BaseException) and bool(value)
            if says_one and _ERROR_KEY.search(str(key)) and value != self._inputs.get(key):
                self._recorder.event("error_in_state", key=str(key))
        for key in self._outputs if values and INTERRUPT not in values else ():
            if values.get(key) is None:
                self._recorder.event("output_not_set", key=key)


def _deadline_instant(config: Any) -> float | None:
    at_s = (config or {}).get("configurable", {}).get(DEADLINE_KEY)
    return None if at_s is None else float(at_s)


def free_state(state: Any) -> FreeState:
    """Convert a graph's state to the messages and documents that alternatives read."""
    values = state if isinstance(state, Mapping) else getattr(state, "__dict__", {})
    documents_value = values.get("documents", ())
    documents = documents_value if isinstance(documents_value, list | tuple) else ()
    waiting = values.get(INTERRUPT)
    return FreeState(
        **({INTERRUPT: waiting} if waiting else {}),
        **({"stop_reason": "stop_flag"} if values.get(STOPPED) else {}),
        messages=_messages(values.get("messages")),
        documents=[document for document in map(_document, documents) if document is not None],
    )


def _messages(values: Any) -> list[Any]:
    if not isinstance(values, list | tuple):
        return []
    try:
        return convert_to_messages(values)
    except (ValueError, TypeError, NotImplementedError):
        return []  # a kind of message that LangChain does not know


def _document(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Document):
        return {"id": value.id or "", "content": value.page_content, "metadata": value.metadata, "score": 0.0}
    return value if isinstance(value, Mapping) else None
