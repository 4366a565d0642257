"""Builds the report of a study, section by section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import count_of, one_line
from docmind_lab.findings.contrasts import contrasts
from docmind_lab.findings.study import Study
from docmind_lab.findings.summary import summarise
from docmind_lab.tables.conditions import by_condition, condition_columns, in_words, with_arms
from docmind_lab.views.reports import figures
from docmind_lab.views.reports.report_model import Block, Figure, Prose, Report, Section
from docmind_lab.views.reports.report_tables import arms_tables, contrasts_table
from docmind_lab.views.reports.sections import limits_section, provenance_section, question_section

# What enforces nothing is no arm to measure the others against.
_NO_REFERENCE = ("unguarded", "fake_timeout")

Made = TypeVar("Made")


def build_report(study: Study) -> Report:
    """Return the report of a study: each section for which it has the runs; the limits name the others.

    Raises: ConfigurationError (it has no runs).
    """
    if study.runs.empty:
        raise ConfigurationError("the study has no runs: there is nothing to report; run it first")
    builder = _ReportBuilder(study)
    return Report(
        title=summarise(study.runs, study.manifest).title,
        study_id=str(study.manifest.get("study_id", "")),
        complete=bool(study.manifest.get("complete", False)),
        sections=tuple(builder.sections()),
    )


@dataclass
class _ReportBuilder:
    """A report in the making. absent: the parts that could not be made of this study, and why."""

    study: Study
    absent: list[str] = field(default_factory=list)

    def sections(self) -> Iterator[Section]:
        runs, columns = self.study.runs, condition_columns(self.study.runs)
        parts, not_drawn = figures.parts_of(self.study)
        yield question_section(self.study)
        yield Section("answer", "The answer", tuple(self._answer()))
        yield Section("arms", "Every arm, with 95 % intervals", (Prose((_ARMS_NOTE,)), *self._arms()))
        yield from self._figure_section("completion", "Answers over time", figures.completion_of, parts)
        yield from self._figure_section("overrun", "Past the deadline", figures.overrun_of, parts)
        yield from self._figure_section("timeline", "One question, call by call", figures.timeline_of, parts)
        yield from self._section("frontier", "How long a deadline", self._frontiers)
        yield from self._section("differences", "Differences between arms", self._differences)
        yield limits_section(
            runs, columns, not_drawn, self.absent, complete=bool(self.study.manifest.get("complete", False))
        )
        yield provenance_section(self.study)

    def _answer(self) -> Iterator[Block]:
        runs = self.study.runs
        columns = condition_columns(runs)
        recommended = self._try("a recommendation", self.study.recommend)
        if not columns:
            summary = summarise(runs, self.study.manifest)
            yield from _advice(summary.advice)
            yield Prose(("What each arm did",), "heading")
            yield Prose(summary.sentences, "list")
        elif recommended is not None:
            yield Prose(recommended.choice)
            if recommended.settings:
                yield Prose((recommended.settings,), "code")
            yield Prose(("In each condition",), "heading")
            yield Prose(tuple(_first_advice(runs, columns)), "list")
        if recommended is not None:
            yield Prose((recommended.title,), "heading")
            yield Prose(recommended.sentences, "list")

    def _arms(self) -> list[Block]:
        runs = self.study.runs
        blocks = self._try(
            "the table of arms", lambda: arms_tables(runs, condition_columns(runs), figures.MOST_CONDITIONS)
        )
        return list(blocks or [])

    def _frontiers(self) -> list[Figure]:
        return [drawing.figure() for drawing in figures.frontiers_of(self.study)]

    def _differences(self) -> list[Block]:
        runs = self.study.runs
        reference = _reference(self.study)
        frame = contrasts(runs, reference)
        if frame.empty:
            raise ConfigurationError(f"{one_line(reference)} is the only arm")
        words = (
            f"Of {count_of(len(frame), 'comparison')} with {one_line(reference)}, {frame['differs'].sum()} differ at "
            "5 %. Arms are compared over the seeds that both met; p values are corrected for all arms and conditions "
            "of a measure (Holm). Not shown is not the same as no difference: the interval says how large it may be."
        )
        return [Prose((words,)), contrasts_table(frame, condition_columns(runs))]

    def _figure_section(
        self, name: str, heading: str, draw: Callable[[figures.Part, str], figures.Drawing], parts: list[figures.Part]
    ) -> Iterator[Section]:
        result = [
            self._try(f"{heading.lower()}{part.caption}", lambda part=part: draw(part, part.caption).figure())  # type: ignore[misc]
            for part in parts
        ]
        if drawn := tuple(figure for figure in result if figure is not None):
            yield Section(name, heading, drawn)

    def _section(self, name: str, heading: str, make: Callable[[], Iterable[Block]]) -> Iterator[Section]:
        blocks = self._try(heading.lower(), make)
        if blocks is not None:
            yield Section(name, heading, tuple(blocks))

    def _try(self, what: str, make: Callable[[], Made]) -> Made | None:
        """Return what `make` makes; if this study lacks what it needs, record why and return None."""
        try:
            return make()
        except ConfigurationError as error:
            self.absent.append(f"{what}: {error}")
            return None


def _advice(lines: Sequence[str]) -> Iterator[Block]:
    """Yield lines of advice as paragraphs, and settings as code, so that they can be pasted."""
    for line in lines:
        settings = line.removeprefix("Settings: ")
        yield Prose((line,)) if settings == line else Prose((settings,), "code")


def _first_advice(runs: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return what to choose in each condition; many conditions are grouped by their choice."""
    result = [(in_words(condition, columns), summarise(group, {}).advice[0]) for condition, group in by_condition(runs)]
    if len(result) <= figures.MOST_CONDITIONS:
        return [f"{words}: {advice}" for words, advice in result]
    chosen: dict[str, list[str]] = {}
    for words, advice in result:
        choice = advice.partition(":")[0].rstrip(".")
        chosen.setdefault(choice, []).append(words)
    if len(chosen) == 1:
        return [f"{next(iter(chosen))}: the same in all {len(result)} conditions."]
    return [f"{choice}: {'; '.join(conditions)}." for choice, conditions in chosen.items()]


_ARMS_NOTE = (
    "Shares: Wilson. Time to an answer: the mean of the time without an answer up to the deadline, over all runs "
    "(restricted mean). Overruns: an unfinished run counts with its horizon, and the worst is then a lower bound (≥). "
    "Late is after the deadline, from the servers' own log: means per run, studentised bootstrap."
)


def _reference(study: Study) -> str:
    """Return the plain arm A, or the first arm that enforces a deadline. Raises: ConfigurationError without one."""
    named = with_arms(study.runs)
    plain = named.astype({"alternative": "str", "alternative_options": "str"})
    enforcing = named[~plain["alternative"].isin(_NO_REFERENCE)]
    if enforcing.empty:
        raise ConfigurationError("no arm enforces a deadline, so there is none to compare the others with")
    is_a = (plain["alternative"] == "cooperative") & (plain["alternative_options"] == "{}")
    return str((named[is_a] if is_a.any() else enforcing)["arm"].min())
