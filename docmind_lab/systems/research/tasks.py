"""Research tasks and their limits: each task has a few hypotheses to look into at several sources.

    task = load_tasks()[0]
    task.hypotheses[0].text
    as_task(question)                  # any question is a task of one hypothesis
    ResearchLimits(max_queries_per_source={"manual": 5, "forum": 3}, max_time_minutes=30)

The tasks of docmind_lab/core/data/research_tasks.json gather questions to the handbook. Their gold is that of the
questions: topics that hold the answers, and facts that a good report states.

Limits have three layers, and on purpose no more: one model call, one source, the whole research. Within them the model
decides when a source has nothing more to give. A task that needs an hour has it. Source: the "simplified timeout
architecture" of a deep-research engine.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from docmind_lab.core.data import data_in
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_allowance, require_count, require_number, require_seconds
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.base.questions import Question, load_questions

DEFAULT_SOURCES = ("manual", "archive", "forum")
"""Sources of a task that names none."""


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis to look into. id: unique within its task."""

    id: str
    text: str


@dataclass(frozen=True)
class ResearchTask(Question):
    """A question with hypotheses to look into at named sources; its gold is that of all hypotheses."""

    hypotheses: tuple[Hypothesis, ...] = ()
    sources: tuple[str, ...] = DEFAULT_SOURCES


def as_task(question: Question) -> ResearchTask:
    """Return the question as a task: unchanged if it is one, else with the question as its only hypothesis."""
    if isinstance(question, ResearchTask):
        return question
    return ResearchTask(**vars(question), hypotheses=(Hypothesis("h1", question.text),))


@functools.cache
def load_tasks(corpus: str = HANDBOOK) -> tuple[ResearchTask, ...]:
    """Load the tasks that come with the handbook, in file order. Raises: as `load_questions`, for another corpus."""
    questions = {question.id: question for question in load_questions(corpus)}
    return tuple(_task(entry, questions) for entry in data_in("research_tasks.json"))


def _task(entry: dict[str, object], questions: dict[str, Question]) -> ResearchTask:
    # Each hypothesis is one question: its text is asked, and its gold is looked for.
    chosen = [questions[str(name)] for name in entry["questions"]]  # type: ignore[attr-defined]
    return ResearchTask(
        id=str(entry["id"]),
        text=str(entry["text"]),
        gold_topics=tuple(dict.fromkeys(topic for question in chosen for topic in question.gold_topics)),
        gold_facts=tuple(fact for question in chosen for fact in question.gold_facts),
        complex=True,
        hypotheses=tuple(Hypothesis(f"h{number}", question.text) for number, question in enumerate(chosen, 1)),
    )


DEFAULT_MAX_QUERIES = 5
"""Of a source that a mapping of `max_queries_per_source` does not name: what the architecture gives a web search."""


@dataclass(frozen=True)
class ResearchLimits:
    """The limits that end a research, besides the model's own judgement.

    max_queries_per_source: attempts at each source, failed ones included; one number, or source → number.
    max_time_per_source_seconds: looked at after every attempt. max_time_minutes: the research budget, looked at before
    everything that would start. Both are soft: what is under way when they end is finished, and kept.
    llm_timeout_seconds: of one model call. llm_retries: attempts of a model call after the first, within the budget.
    max_concurrent_sources: sources under way at once. hypotheses_at_once: hypotheses whose sources run side by side.

    Raises: ConfigurationError naming the field and the remedy.
    """

    max_queries_per_source: int | Mapping[str, int] = DEFAULT_MAX_QUERIES
    max_time_per_source_seconds: float = 300.0
    max_time_minutes: float = 120.0
    llm_timeout_seconds: float = 180.0
    llm_retries: int = 2
    max_concurrent_sources: int = 4
    hypotheses_at_once: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.max_queries_per_source, Mapping):
            # A copy of its own: the caller's may change later.
            object.__setattr__(self, "max_queries_per_source", dict(self.max_queries_per_source))
            for source, number in self.max_queries_per_source.items():
                require_count(f"max_queries_per_source[{source!r}]", number, 0)
        else:
            require_count("max_queries_per_source", self.max_queries_per_source, 0)
        require_allowance("max_time_per_source_seconds", self.max_time_per_source_seconds)
        require_number("max_time_minutes", self.max_time_minutes, "0 or more finite minutes", least=0, remedy="try 60")
        require_seconds("llm_timeout_seconds", self.llm_timeout_seconds)
        require_count("llm_retries", self.llm_retries, 0)
        require_count("max_concurrent_sources", self.max_concurrent_sources)
        require_count("hypotheses_at_once", self.hypotheses_at_once)

    def max_queries(self, source: str) -> int:
        """Return how many attempts a source gets."""
        if isinstance(self.max_queries_per_source, Mapping):
            return self.max_queries_per_source.get(source, DEFAULT_MAX_QUERIES)
        return self.max_queries_per_source

    def check_sources(self, known: Iterable[str]) -> None:
        """Return if every limited source exists. Raises: ConfigurationError naming the one that does not."""
        names = list(known)
        limited = self.max_queries_per_source if isinstance(self.max_queries_per_source, Mapping) else {}
        for source in limited:
            if source not in names:
                raise ConfigurationError(
                    f"max_queries_per_source names {source!r}, which is no source; the sources are {', '.join(names)}"
                )

    @property
    def budget_s(self) -> float:
        """The research budget in seconds."""
        return self.max_time_minutes * 60.0
