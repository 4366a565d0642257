"""The tools of the graphs in this folder, each with its effect declared, and their model.

`book_berth` books under a reference: two calls with one reference are one booking. `send_letter` has nothing of the
kind: each call sends a letter.
"""

import asyncio
import time

from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="gpt-4.1-mini", api_key="not used", max_retries=0)


def _tool(name, does, seconds, text, **declared):
    def run(reference: str) -> str:
        time.sleep(seconds)
        return text.format(reference=reference)

    async def arun(reference: str) -> str:
        await asyncio.sleep(seconds)
        return text.format(reference=reference)

    return StructuredTool.from_function(run, arun, name=name, description=does, metadata=declared)


depth_of = _tool("depth_of", "Say how deep a harbour is.", 0.2, "The harbour of {reference} is 14 m deep.")
book_berth = _tool(
    "book_berth",
    "Book a berth under a reference.",
    0.4,
    "A berth is booked under {reference} for 3 nights.",
    effect="booking",
    idempotency_key="reference",
)
send_letter = _tool(
    "send_letter", "Send a letter about a reference.", 0.3, "The letter about {reference} is sent.", effect="letter"
)
tools = [depth_of, book_berth, send_letter]


class BusyModel(ChatOpenAI):
    """The model, whose first calls fail: their service is busy. failures: how many of them; -1 for all."""

    failures: int = 1

    def _generate(self, *arguments, **options):
        self._fail()
        return super()._generate(*arguments, **options)

    async def _agenerate(self, *arguments, **options):
        self._fail()
        return await super()._agenerate(*arguments, **options)

    def _fail(self):
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the service is busy")


def busy_model(failures):
    """Return a model whose first calls fail."""
    return BusyModel(model="gpt-4.1-mini", api_key="not used", max_retries=0, failures=failures)


def busy_tool():
    """Return a tool with an effect whose first call fails."""
    calls = []

    def run(reference: str) -> str:
        time.sleep(0.2)
        calls.append(reference)
        if len(calls) == 1:
            raise ConnectionError("the harbour office is busy")
        return f"The pilot for {reference} is ordered."

    async def arun(reference: str) -> str:
        await asyncio.sleep(0.2)
        calls.append(reference)
        if len(calls) == 1:
            raise ConnectionError("the harbour office is busy")
        return f"The pilot for {reference} is ordered."

    return StructuredTool.from_function(
        run, arun, name="order_pilot", description="Order a pilot for a ship.", metadata={"effect": "order"}
    )
