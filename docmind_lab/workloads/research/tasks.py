"""What is researched: tasks of a few hypotheses, each to be looked into at several sources.

    task = load_tasks()[0]
    task.hypotheses[0].text
    as_task(question)                  # any question is a task of one hypothesis

The tasks of docmind_lab/data/research_tasks.json gather questions that come with a corpus. Their gold is that of the
questions: topics that hold the answers, and facts that a good report states.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from dataclasses import dataclass

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.docmind.retrieval import Question, load_questions

DEFAULT_SOURCES = ("manual", "archive", "forum")
"""Sources of a task that names none."""


@dataclass(frozen=True)
class Hypothesis:
    """One thing to look into. id: within its task."""

    id: str
    text: str


@dataclass(frozen=True)
class ResearchTask(Question):
    """A question with the hypotheses that it is looked into by, and the names of the sources to ask.

    Gold topics and facts are those of all hypotheses together.
    """

    hypotheses: tuple[Hypothesis, ...] = ()
    sources: tuple[str, ...] = DEFAULT_SOURCES


def as_task(question: Question) -> ResearchTask:
    """The question as a task: itself if it is one, else a task whose one hypothesis is the question."""
    if isinstance(question, ResearchTask):
        return question
    return ResearchTask(
        id=question.id,
        text=question.text,
        gold_topics=question.gold_topics,
        gold_facts=question.gold_facts,
        complex=question.complex,
        hypotheses=(Hypothesis("h1", question.text),),
    )


@functools.cache
def load_tasks(corpus: str = "language_reference") -> tuple[ResearchTask, ...]:
    """The tasks that come with a corpus, in file order. Raises: ConfigurationError for a corpus without any."""
    file = importlib.resources.files("docmind_lab.core.data").joinpath("research_tasks.json")
    shipped = json.loads(file.read_text(encoding="utf-8"))
    if corpus not in shipped:
        raise ConfigurationError(f"corpus must be one of {', '.join(shipped)}, not {corpus!r}")
    questions = {question.id: question for question in load_questions(corpus)}
    return tuple(_task(entry, questions) for entry in shipped[corpus])


def _task(entry: dict[str, object], questions: dict[str, Question]) -> ResearchTask:
    # Each hypothesis is one question of the corpus: its text is asked, and its gold is looked for.
    chosen = [questions[str(name)] for name in entry["questions"]]  # type: ignore[attr-defined]
    return ResearchTask(
        id=str(entry["id"]),
        text=str(entry["text"]),
        gold_topics=tuple(dict.fromkeys(topic for question in chosen for topic in question.gold_topics)),
        gold_facts=tuple(fact for question in chosen for fact in question.gold_facts),
        complex=True,
        hypotheses=tuple(Hypothesis(f"h{number}", question.text) for number, question in enumerate(chosen, 1)),
    )
