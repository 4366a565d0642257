"""What a model call has to do with the meter of its run: how long its reply may be, and what it used."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableBinding
from langchain_openai.chat_models.base import BaseChatOpenAI

from docmind_lab.core.budgets import ReplyCap, current_meter
from docmind_lab.core.errors import BudgetError, SpendingRefused
from docmind_lab.network.recorder import current_recorder


def unbound(model: Any) -> Any:
    """The model inside whatever is bound to it."""
    while isinstance(model, RunnableBinding):
        model = model.bound
    return model


def budget_of(error: BudgetError) -> str:
    """Which budget it is that is used up: "time", "tokens", "calls" or "cost"."""
    return error.budget if isinstance(error, SpendingRefused) else "time"


def reply_cap(request: ModelRequest[Any]) -> ReplyCap | None:
    """How far what is left cuts the reply; None where it does not, or where the model would not hear of it."""
    model, meter = unbound(request.model), current_meter()
    if meter is None or not isinstance(model, BaseChatOpenAI):
        return None
    cap = meter.reply_cap()
    settings = request.model_settings
    own = (model.max_tokens, *(settings.get(name) for name in ("max_tokens", "max_completion_tokens")))
    if cap is None or any(limit is not None and limit <= cap.tokens for limit in own):
        return None
    return cap


def capped(request: ModelRequest[Any], cap: ReplyCap | None) -> ModelRequest[Any]:
    """The request for a reply of no more tokens than that."""
    if cap is None:
        return request
    settings = {name: value for name, value in request.model_settings.items() if name != "max_completion_tokens"}
    # By this name it takes the place of the model's own limit; ChatOpenAI sends it as max_completion_tokens.
    return request.override(model_settings={**settings, "max_tokens": cap.tokens})


def settle(response: ModelResponse[Any], role: str, cap: ReplyCap | None) -> None:
    """Tell recorder and meter what the response of the current call says it used, and whether it was cut."""
    recorder, meter = current_recorder(), current_meter()
    message = next((m for m in response.result if isinstance(m, AIMessage)), None)
    usage = None if message is None else message.usage_metadata
    if usage is not None:
        if recorder is not None:
            recorder.note_tokens(usage["input_tokens"], usage["output_tokens"])
        if meter is not None:
            meter.charge(usage["input_tokens"], usage["output_tokens"])
    elif meter is not None and meter.budget.needs_usage and recorder is not None:
        recorder.event("usage_missing", role, kind="llm")
    was_cut = message is not None and message.response_metadata.get("finish_reason") == "length"
    if was_cut and cap is not None and meter is not None:
        meter.note_cut(cap.kind)
        if recorder is not None:
            recorder.event("reply_cut", role, kind="llm", budget=cap.kind, tokens=cap.tokens)
