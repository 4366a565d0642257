"""Tools of LangChain in an enforced run: what they return is noted, and none holds a reserve up or begins in it.

The hook is in place while enforced runs, and those with the policy `wrap_up`, go on. It answers calls that a model
has made, so that the conversation stays valid. A tool that code calls by itself, one that is how an agent
answers (`return_direct`), and one that hands over to another agent run as ever.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from docmind_lab.core.holds import current_hold
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.core.time_policies import WrapUp
from docmind_lab.network.replacements import Replacements
from docmind_lab.network.wrapping_up import ToolUnderWay, hands_over, reserve_in_force


def refusal(name: str, call_id: Any, wrap_up: WrapUp | None = None, *, is_answer: bool = False) -> ToolMessage | None:
    """Return the answer to a call of a tool that is not to begin any more; None for one that may begin.

    Args:
        name: The tool.
        call_id: The model's id of the call.
        wrap_up: The policy; that of the run when left out.
        is_answer: Whether what the tool returns is the agent's answer.
    """
    reserve = reserve_in_force(wrap_up)
    if reserve is None or is_answer or hands_over(name) or not reserve.refuses_tools:
        return None
    reserve.note("refused", name)
    return _message(name, call_id, "was not run: too little time is left")


def _message(name: str, call_id: Any, what: str) -> ToolMessage:
    content = f"The tool {name} {what}. Answer with what you have."
    return ToolMessage(content=content, name=name, tool_call_id=str(call_id), status="error")


def _run_held(run: Operation, tool: BaseTool, call_id: str | None) -> Steps[Any]:
    """Run a tool, or refuse it. call_id: the model's; None where code calls it, which no reserve ends."""
    is_held = call_id is not None and reserve_in_force() is not None
    refused = refusal(tool.name, call_id, is_answer=tool.return_direct) if is_held else None
    if refused is not None:
        return refused
    under_way, hold = ToolUnderWay(tool.name), current_hold()
    with under_way.scope() if is_held else contextlib.nullcontext():
        try:
            output = yield run
        except Exception as error:
            if not under_way.was_cut or isinstance(error, GraphBubbleUp):
                raise
            return _message(tool.name, call_id, "was cut: its time was over")
    if hold is not None:
        hold.note("returned", (tool.name, output))
    return output


def _wrap_run(drive: Callable[[Steps[Any]], Any], previous: Any) -> Any:
    """Return a tool's `run` or `arun` that is held. drive: `finish`, or `afinish` of one that is awaited."""

    def run(tool: BaseTool, *arguments: Any, **options: Any) -> Any:
        once = functools.partial(previous, tool, *arguments, **options)
        return drive(_run_held(Operation(once, once), tool, options.get("tool_call_id")))

    return run


_lock = threading.Lock()
_hooks = Replacements()
_runs = 0


@contextlib.contextmanager
def hold_tools() -> Iterator[None]:
    """Hold the tools of a run in a block, and note what they return."""
    global _runs
    with _lock:
        _runs += 1
        if _runs == 1:
            _hooks.replace(BaseTool, "run", functools.partial(_wrap_run, finish))
            _hooks.replace(BaseTool, "arun", functools.partial(_wrap_run, afinish))
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0:
                _hooks.remove()
