"""Stream an answer while it is written: chunks of text first, the whole response at the end."""

from __future__ import annotations

import queue
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage

from docmind_lab.core.sync_async import in_daemon_thread
from docmind_lab.systems.docmind.coordinator.response import AgentResponse

WRITING_ROLE = "synthesis"
# About a line of text: what a person reads at a glance.
_CHUNK = re.compile(r"\S+(?:\s+\S+){0,9}\s*", re.DOTALL)
_CORRECTION = "\n\n"

Write = Callable[[str], None]


def chunks_of(text: str) -> list[str]:
    """Split the text into pieces of up to ten words; joined, they are the text without leading blanks."""
    return _CHUNK.findall(text)


class AnswerStream(Iterator[str]):
    """An iterator over the chunks of an answer's text; afterwards `response` is the whole answer.

    The chunks end in the response's content: when nothing streams, it comes in pieces; when a correction changed what
    had been streamed, the corrected answer follows after a blank line.

    A reader who stops early stops nothing: the query ends by itself, at its deadline at the latest.
    """

    def __init__(self, answer: Callable[[Write], AgentResponse]) -> None:
        self._chunks: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._answer = answer
        self._written: list[str] = []
        self._answered = in_daemon_thread(self._work, "docmind-answer-stream")

    def __next__(self) -> str:
        chunk = self._chunks.get()
        if chunk is not None:
            return chunk
        self._chunks.put(None)
        self._answered.result()
        raise StopIteration

    @property
    def response(self) -> AgentResponse:
        """The whole response, once it is there. Raises what the query raised."""
        return self._answered.result()

    def _write(self, text: str) -> None:
        if text:
            self._written.append(text)
            self._chunks.put(text)

    def _work(self) -> AgentResponse:
        try:
            response = self._answer(self._write)
            for chunk in self._unwritten(response.content):
                self._chunks.put(chunk)
            return response
        finally:
            self._chunks.put(None)

    def _unwritten(self, content: str) -> list[str]:
        text = "".join(self._written)
        if content.startswith(text):
            return chunks_of(content[len(text) :])
        return [_CORRECTION, *chunks_of(content)]


class WrittenTokens(BaseCallbackHandler):
    """Callback handler that passes on each token from the model of the role that writes the answer."""

    run_inline = True

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write
        self._writing: set[UUID] = set()
        self.text = ""

    def on_chat_model_start(
        self,
        serialized: Mapping[str, Any],
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Remember the model's run if it writes the answer."""
        path = str((metadata or {}).get("langgraph_checkpoint_ns", ""))
        if path.partition(":")[0].removesuffix("_agent") == WRITING_ROLE:
            self._writing.add(run_id)
            self.text = ""

    def on_llm_new_token(self, token: str | list[Any], *, run_id: UUID, **kwargs: Any) -> None:
        """Pass on the token if it is part of the answer."""
        if run_id in self._writing and isinstance(token, str):
            self.text += token
            self._write(token)
