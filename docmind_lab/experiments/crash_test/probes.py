"""What a trial puts around a graph to see it: a checkpointer, a store, callbacks, the services.

Writes and steps take a little virtual time, so that a cut can fall before, within and after each.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from unittest.mock import patch

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage, convert_to_openai_messages
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, Op, PutOp, Result

from docmind_lab.alternatives.enforcement.repaired_threads import WAS_CUT
from docmind_lab.alternatives.passing_saver import PassingSaver
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish, pause
from docmind_lab.experiments.crash_test.observation import WRITE_S, Journal
from docmind_lab.services.conversation_rules import refusal_of
from docmind_lab.services.endpoints import ENDPOINTS_PATH, EndpointService
from docmind_lab.services.plan import Chunk, Headers, Plan, Service, ServiceRequest
from docmind_lab.systems.base.observer import is_node

_KEY_HEADERS = ("idempotency-key", "x-idempotency-key")


def _written(journal: Journal, kind: str, what: str, operation: Operation) -> Steps[Any]:
    """Carry out an operation of a store, marked if it is a write: if it has a kind."""
    if not kind:
        return (yield operation)
    journal.require_life()
    journal.mark(kind, what, "begins")
    yield pause(WRITE_S / 2, journal.clock)
    journal.require_life()
    result = yield operation
    yield pause(WRITE_S / 2, journal.clock)
    journal.mark(kind, what, "ends")
    return result


class ProbeSaver(PassingSaver):
    """A checkpointer that marks every write, and writes nothing for a process that was killed."""

    def __init__(self, inner: BaseCheckpointSaver[Any], journal: Journal) -> None:
        super().__init__(inner)
        self._journal = journal

    def put_above(self, inner: BaseCheckpointSaver[Any]) -> None:
        """Watch another checkpointer from now on."""
        self.inner, self.serde = inner, inner.serde

    def pass_on(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """Pass an operation on, marked if it writes."""
        return finish(self._steps(operation, *arguments, **options))

    async def pass_on_async(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """`pass_on`, of an async operation."""
        return await afinish(self._steps(operation, *arguments, **options))

    def _steps(self, operation: str, *arguments: Any, **options: Any) -> Steps[Any]:
        forms = (super().pass_on, super().pass_on_async)
        passing = Operation(*(functools.partial(form, operation, *arguments, **options) for form in forms))
        return _written(self._journal, *_put_by(operation, *arguments), passing)


def _put_by(operation: str, *arguments: Any) -> tuple[str, str]:
    """Return what an operation of a checkpointer writes: its kind, and a name; two empty texts for none."""
    if operation in ("put", "aput"):
        _, _, metadata, _ = arguments
        return "checkpoint", f"step {metadata.get('step', 0)}"
    if operation in ("put_writes", "aput_writes"):
        channels = dict.fromkeys(channel for channel, _ in arguments[1] if not channel.startswith("branch:"))
        return "pending write", ", ".join(channels)
    return "", ""


class ProbeStore(BaseStore):
    """A store that marks every write, and writes nothing for a process that was killed."""

    def __init__(self, inner: BaseStore, journal: Journal) -> None:
        self._inner, self._journal = inner, journal

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out the operations, those that write marked."""
        return finish(self._steps(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out the operations, those that write marked."""
        return await afinish(self._steps(list(ops)))

    def _steps(self, ops: list[Op]) -> Steps[list[Result]]:
        what = ", ".join("/".join((*op.namespace, op.key)) for op in ops if isinstance(op, PutOp))
        batch = Operation(functools.partial(self._inner.batch, ops), functools.partial(self._inner.abatch, ops))
        return _written(self._journal, "store write" if what else "", what, batch)


class StepCallbacks(BaseCallbackHandler):
    """Lets each step take its time, counts the effects that tools declare, and checks what models are sent.

    A tool declares its effect in its metadata: {"effect": "charge"}, and with {"idempotency_key": "order_id"} the
    argument that makes two calls one effect.
    """

    run_inline = True

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal
        self._nodes: set[Any] = set()
        self._tools: dict[Any, tuple[str, str, str]] = {}

    def on_chain_start(self, serialized: Any, inputs: Any, **details: Any) -> None:
        """Let the beginning of a node take its time."""
        if is_node(details.get("tags")):
            self._nodes.add(details["run_id"])
            self._journal.spend_step()

    def on_chain_end(self, outputs: Any, **details: Any) -> None:
        """Let the end of a node take its time."""
        if details["run_id"] in self._nodes:
            self._nodes.discard(details["run_id"])
            self._journal.spend_step()

    def on_tool_start(self, serialized: Any, input_str: Any, **details: Any) -> None:
        """Mark the beginning of a tool, and remember the effect that it declares."""
        name = str((serialized or {}).get("name") or "")
        given, declared = details.get("inputs") or {}, details.get("metadata") or {}
        argument = str(declared.get("idempotency_key") or "")
        key = str(given.get(argument, "")) if argument else ""
        self._tools[details["run_id"]] = name, str(declared.get("effect") or ""), key
        self._journal.mark("tool", name, "begins")
        self._journal.spend_step()

    def on_tool_end(self, output: Any, **details: Any) -> None:
        """Mark the end of a tool, with its effect."""
        self._end_tool(details["run_id"], has_effect=True)

    def on_tool_error(self, error: BaseException, **details: Any) -> None:
        """Mark the end of a tool that failed, which has no effect."""
        self._end_tool(details["run_id"], has_effect=False)

    def _end_tool(self, run_id: Any, *, has_effect: bool) -> None:
        name, effect, key = self._tools.pop(run_id, ("", "", ""))
        if effect and has_effect:
            self._journal.effect(f"{effect} (tool {name})", key)
        self._journal.mark("tool", name, "ends")
        self._journal.spend_step()

    def on_chat_model_start(self, serialized: Any, messages: Any, **details: Any) -> None:
        """Check the conversation that a chat model is sent, wherever the model is."""
        self._journal.conversed.add(self._journal.part)
        told = [
            each for each in itertools.chain(*messages) if isinstance(each, ToolMessage) and each.content == WAS_CUT
        ]
        self._journal.calls_cut += [str(each.name) for each in told]
        for conversation in messages:
            try:
                payload = {"messages": convert_to_openai_messages(conversation)}
            except Exception:  # noqa: BLE001 - a kind of message that has no counterpart there has no rule either
                continue
            refusal = refusal_of(payload, "openai_chat")
            if refusal is not None:
                self._journal.refusal(str(refusal))


@dataclasses.dataclass(frozen=True)
class ProbedModel:
    """The simulated model, whose refusals of a conversation are noted."""

    inner: Service
    journal: Journal

    def plan(self, request: ServiceRequest) -> Plan:
        """See `Service`."""
        plan = self.inner.plan(request)
        self.journal.conversed.add(self.journal.part)
        first = plan.steps[0] if plan.steps else None
        if isinstance(first, Headers) and first.status == 400:
            self.journal.refusal(_words_in(plan))
        return plan


def _words_in(plan: Plan) -> str:
    body = b"".join(step.data for step in plan.steps if isinstance(step, Chunk))
    try:
        payload = json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
    error = payload.get("error") if isinstance(payload, Mapping) else None
    return str(error.get("message", error)) if isinstance(error, Mapping) else str(error or payload)


@dataclasses.dataclass(frozen=True)
class ProbedEndpoints:
    """The simulated endpoints of other services, whose effects are noted when they have the request.

    Only a row of the user's own is known to change something: the ready ones are searches and the like.
    """

    inner: EndpointService
    journal: Journal

    def plan(self, request: ServiceRequest) -> Plan:
        """See `Service`."""
        host, _, rest = request.path.removeprefix(ENDPOINTS_PATH).partition("/")
        row = self.inner.table.of_user(request.method, host, f"/{rest}")
        if row is not None and row.has_effect(request.method):
            key = next((request.headers[name] for name in _KEY_HEADERS if name in request.headers), "")
            self.journal.effect(f"{request.method} {host}/{rest}", key)
        return self.inner.plan(request)


@contextlib.contextmanager
def temporary_files() -> Iterator[Callable[[], list[str]]]:
    """Yield a function that lists the temporary files and folders of a trial that are still there.

    During the block the standard library makes them in a folder of the trial's own, which is removed with it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="docmind-crash-", ignore_cleanup_errors=True) as folder,
        patch.object(tempfile, "tempdir", folder),
    ):
        yield lambda: os.listdir(folder)
