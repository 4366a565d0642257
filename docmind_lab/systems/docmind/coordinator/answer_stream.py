"""Stream an answer while it is written: chunks of text first, the whole response at the end."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage

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
        self._result: AgentResponse | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="docmind-answer-stream", daemon=True)
        self._thread.start()

    def __next__(self) -> str:
        chunk = self._chunks.get()
        if chunk is not None:
            return chunk
        self._chunks.put(None)
        if self._error is not None:
            raise self._error
        raise StopIteration

    @property
    def response(self) -> AgentResponse:
        """The whole response, once it is there. Raises what the query raised."""
        self._thread.join()
        if self._result is None:
            assert self._error is not None
            raise self._error
        return self._result

    def _write(self, text: str) -> None:
        if text:
            self._written.append(text)
            self._chunks.put(text)

    def _work(self) -> None:
        try:
            self._result = self._answer(self._write)
            for chunk in self._unwritten(self._result.content):
                self._chunks.put(chunk)
        except BaseException as error:  # noqa: BLE001 - raised in the reader's thread
            self._error = error
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
