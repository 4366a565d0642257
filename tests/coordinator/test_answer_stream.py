"""Text as it is written, and what stands in for it when nothing streams."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from often import often

from docmind_lab.systems.docmind.coordinator import AgentResponse, AnswerStream, MultiAgentCoordinator
from docmind_lab.systems.docmind.coordinator.answer_stream import chunks_of

QUESTION = "What does a hard timeout leave running?"
Made = Callable[..., MultiAgentCoordinator]


def test_chunks_joined_are_the_text() -> None:
    text = "One two three four five six seven eight nine ten eleven.\n\nTwelve  thirteen."
    assert "".join(chunks_of(text)) == text
    assert len(chunks_of(text)) == 2


def test_when_nothing_streams_the_answer_comes_in_chunks() -> None:
    stream = AnswerStream(lambda write: AgentResponse("word " * 25))
    assert [len(chunk.split()) for chunk in stream] == [10, 10, 5]
    assert stream.response.content == "word " * 25


@pytest.mark.parametrize(
    ("streamed", "answer", "read"),
    [
        ("The answer ", "The answer is here.", "The answer is here."),
        # A correction follows what was streamed, after a blank line.
        ("A wrong one.", "The right one.", "A wrong one.\n\nThe right one."),
    ],
)
def test_what_was_streamed_is_not_said_twice(streamed: str, answer: str, read: str) -> None:
    def write_first(write: Callable[[str], None]) -> AgentResponse:
        write(streamed)
        return AgentResponse(answer)

    assert "".join(AnswerStream(write_first)) == read


def test_an_error_reaches_the_reader() -> None:
    def answer(write: Callable[[str], None]) -> AgentResponse:
        write("Some text")
        raise ValueError("broken")

    stream = AnswerStream(answer)
    assert next(stream) == "Some text"
    with pytest.raises(ValueError, match="broken"):
        next(stream)


@pytest.mark.wall
@pytest.mark.parametrize("alternative", often(["A", "B", "C", "E"], "B", "E"))
def test_tokens_of_synthesis_arrive_as_they_are_written(alternative: str, coordinator: Made) -> None:
    stream = coordinator(alternative=alternative).stream(QUESTION)
    chunks = list(stream)
    assert "".join(chunks) == stream.response.content
    assert len(chunks) > 20
    assert stream.response.optimization_metrics["output_tokens"] > 0


@pytest.mark.wall
def test_an_answer_cut_in_the_middle_keeps_what_was_written(coordinator: Made) -> None:
    """Tokens come 0.3 s apart under the trickle: some are there at the deadline, by far not all."""
    stream = coordinator("trickle", timeout_s=2.5).stream(QUESTION)
    text = "".join(stream)
    assert stream.response.timed_out
    assert stream.response.content == text
    assert stream.response.sources
