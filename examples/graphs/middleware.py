"""A stack of middleware: retries, a fallback model, summarisation, limits on calls, and a context editor."""

from knowledge import lookup
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="gpt-4.1", max_retries=0)
graph = create_agent(
    model,
    [lookup],
    system_prompt="You answer questions about harbours.",
    middleware=[
        SummarizationMiddleware(model=ChatOpenAI(model="gpt-4.1-nano"), trigger=("messages", 3), keep=("messages", 2)),
        ModelCallLimitMiddleware(run_limit=8, exit_behavior="end"),
        ToolCallLimitMiddleware(run_limit=4),
        ModelFallbackMiddleware(ChatOpenAI(model="gpt-4.1-mini", max_retries=0)),
        ModelRetryMiddleware(max_retries=2, initial_delay=0.2),
        ToolRetryMiddleware(max_retries=2, initial_delay=0.2),
    ],
)
