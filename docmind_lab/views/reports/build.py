"""Builds the report of a study, section by section."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import count_of, join_names, one_line
from docmind_lab.findings.contrasts import contrasts
from docmind_lab.findings.finding import Code, Finding
from docmind_lab.findings.study import Study
from docmind_lab.findings.summary import summarise
from docmind_lab.statistics.sample_size import quantile_name, runs_needed
from docmind_lab.tables.conditions import (
    budgets_in_words,
    by_condition,
    condition_columns,
    in_words,
    profiles_of_servers,
    with_arms,
)
from docmind_lab.tables.manifest import flatten
from docmind_lab.views.reports import figures
from docmind_lab.views.reports.report_page import Block, Figure, Report, Section, Table
from docmind_lab.views.reports.report_tables import arms_tables, contrasts_table

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
        parts, not_drawn = figures.parts_of(self.study)
        yield question_section(self.study)
        yield Section("answer", "The answer", tuple(self._answer()))
        yield Section("arms", "Every arm, with 95 % intervals", (_ARMS_NOTE, *self._arms()))
        yield from self._figure_section("completion", "Answers over time", figures.completion_of, parts)
        yield from self._figure_section("overrun", "Past the deadline", figures.overrun_of, parts)
        yield from self._figure_section("timeline", "One question, call by call", figures.timeline_of, parts)
        yield from self._section("frontier", "How long a deadline", self._frontiers)
        yield from self._section("differences", "Differences between arms", self._differences)
        yield Section("limits", "What not to conclude", tuple(self._limits(not_drawn)))
        yield provenance_section(self.study)

    def _answer(self) -> Iterator[Block]:
        runs = self.study.runs
        columns = condition_columns(runs)
        recommended = self._try("a recommendation", self.study.recommend)
        if not columns:
            summary = summarise(runs, self.study.manifest)
            yield from _advice(summary.advice)
            yield Finding(("What each arm did", summary.sentences))
        elif recommended is not None:
            yield from recommended.choice
            if recommended.settings:
                yield Code(recommended.settings)
            yield Finding(("In each condition", tuple(_first_advice(runs, columns))))
        if recommended is not None:
            yield Finding((recommended.title, recommended.sentences))

    def _limits(self, not_drawn: Sequence[str]) -> Iterator[Block]:
        """Yield what the study cannot show. not_drawn: conditions without figures."""
        runs, complete = self.study.runs, bool(self.study.manifest.get("complete", False))
        yield tuple(_cautions(runs, condition_columns(runs), complete))
        if not_drawn:
            drawn = count_of(sum(1 for _ in by_condition(runs)) - len(not_drawn), "condition")
            yield f"Figures are drawn for {drawn}; these are in the tables only:"
            yield tuple(not_drawn)
        if self.absent:
            yield "Not in this report, and why:"
            yield tuple(self.absent)

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
        return [words, contrasts_table(frame, condition_columns(runs))]

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
        yield line if settings == line else Code(settings)


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
    "(restricted mean). Overruns: an unfinished run counts with its horizon; ≥ marks what is then a lower bound. "
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


def question_section(study: Study) -> Section:
    """Return the section on what was asked: conditions, arms, runs."""
    blocks: list[Block] = [_facts(study.runs, study.manifest)]
    failed = study.manifest.get("failed_cells", [])
    if failed:
        whose = "its" if len(failed) == 1 else "their"
        blocks.append(f"{count_of(len(failed), 'cell')} failed, and {whose} runs are missing:")
        blocks.append(tuple(f"{item['cell']}: {item['reason']}" for item in failed))
    left_out = study.manifest.get("left_out", [])
    if left_out:
        blocks.append("Combinations of levels that cannot be, and were not run:")
        blocks.append(tuple(str(reason) for reason in left_out))
    return Section("asked", "What was asked", tuple(blocks))


def _facts(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> dict[str, str]:
    design = manifest.get("design", {})
    arms = [one_line(arm) for arm in with_arms(runs)["arm"].cat.categories]
    profiles = profiles_of_servers(runs)
    facts = {
        "Study": str(manifest.get("study_id", "without a name")),
        "State": _state(manifest),
        "Runs": f"{len(runs):,} runs, {count_of(runs['seed'].nunique(), 'seed')}, "
        f"{count_of(runs['question_id'].nunique(), 'question')}",
        "Arms": ", ".join(arms),
        "Decision timeout": f"{join_names([f'{value:g}' for value in sorted(runs['decision_timeout_s'].unique())])} s",
        "Observed until": f"{join_names([f'{value:g}' for value in sorted(runs['horizon_s'].unique())])} s",
        "Latencies": join_names([name or "live services" for name in _levels(runs, "latency_profile")]),
        "Faults": join_names([name or "none" for name in _levels(runs, "fault")]),
        "Servers stop when a client leaves": (
            join_names(profiles) if profiles else _yes_or_no(runs["stops_on_disconnect"])
        ),
        "Router injected": _yes_or_no(runs["router_injection"]),
        "Clock": join_names(_levels(runs, "clock")),
    }
    if runs["adoption"].any():
        facts["Hops that adopt the deadline"] = join_names(
            [f"{share:.0%}" for share in sorted(runs["adoption"].unique())]
        )
    if budgets := budgets_in_words(runs):
        facts["Budgets"] = budgets[0]
    if "corpus" in design:
        facts["Documents"] = _documents(design)
    if "questions" in design:
        questions = design["questions"]
        facts["Questions"] = f"{questions['count']} of the user's own ({questions['digest'][:12]})"
    if "seed" in design:
        facts["First seed"] = str(design["seed"])
    return facts


def _documents(design: Mapping[str, Any]) -> str:
    name, library = str(design["corpus"]), design.get("library")
    if library is None:
        return name.replace("_", " ")
    documents, passages = count_of(library["documents"], "document"), count_of(library["passages"], "passage")
    return f"{documents} of the user's own, {passages} ({name})"


def _state(manifest: Mapping[str, Any]) -> str:
    if manifest.get("complete", False):
        return "complete"
    if manifest.get("failed_cells"):
        return "not complete: some cells failed, and the same call tries them again"
    return "not complete: everything here is of the runs that are done"


def _levels(runs: pd.DataFrame, column: str) -> list[str]:
    return sorted({str(value) for value in runs[column]})


def _yes_or_no(values: pd.Series[bool]) -> str:
    return "both" if values.nunique() > 1 else "yes" if bool(values.iloc[0]) else "no"


_QUANTILES = (0.5, 0.9, 0.95, 0.99)


def _cautions(runs: pd.DataFrame, columns: Sequence[str], complete: bool) -> Iterator[str]:
    if not complete:
        yield "The study is not complete: the runs that are missing may differ from those that are here."
    yield _rare_events(runs, columns)
    profiles = sorted({str(name) for name in runs["latency_profile"]} - {""})
    if profiles:
        yield (
            f"Latencies are those of {join_names(profiles)}, not of your provider, and the model is scripted: what was "
            "measured is time and what is found, not how well a language model writes."
        )
    if "virtual" in set(runs["clock"].astype("str")):
        yield (
            "In virtual time Python's own work takes none: a real run is later by milliseconds, and differences of "
            "that size cannot be seen here. The wall clock shows them."
        )
    if "wall" in set(runs["clock"].astype("str")):
        yield "On the wall clock differences of a few milliseconds are noise of the machine."
    if runs["busy_after_deadline_s"].isna().any():
        yield "Without the log of a live server nobody knows what it did after the deadline: NaN is not 0."
    if set(runs["fault"].astype("str")) <= {"", "none"}:
        yield "No fault was injected: calls that hang, trickle or fail set the arms further apart than these did."
    yield (
        "Intervals are of this study's questions and latencies, drawn again; they say nothing of other questions, "
        "graphs or loads. Bands of curves hold at each instant, not for a whole curve at once."
    )
    if len(columns) > 1:
        yield "Conditions are compared one by one: no interaction of factors was tested."


def _rare_events(runs: pd.DataFrame, columns: Sequence[str]) -> str:
    sizes = with_arms(runs).groupby([*columns, "arm"], observed=True).size()
    least = int(sizes.min())
    known = [quantile_name(q) for q in _QUANTILES if runs_needed(q) <= least]
    missing = [(quantile_name(q), runs_needed(q)) for q in _QUANTILES if runs_needed(q) > least]
    enough = f"enough for {join_names(known)}" if known else "not enough for any quantile"
    needed = f"; {', '.join(f'{name} needs {number}' for name, number in missing)}" if missing else ""
    are = "is" if least == 1 else "are"
    return f"{count_of(least, 'run')} of an arm in a condition {are} {enough}{needed}: rare events are not seen."


_MADE_OF = {
    "design": "The design",
    "settings": "The settings",
    "versions": "Versions",
    "machine": "The machine",
}
# Beyond this a value (the quantiles of a profile) is for a machine: the manifest has it whole.
_LONGEST_VALUE = 160


def provenance_section(study: Study) -> Section:
    """Return the last section: what determined the runs, and the machine they ran on."""
    manifest = study.manifest
    facts = {
        name.replace("_", " "): str(manifest[name]) for name in ("created_utc", "schema_version") if name in manifest
    }
    blocks: list[Block] = [facts] if facts else []
    for name, caption in _MADE_OF.items():
        values = manifest.get(name)
        if isinstance(values, Mapping) and values:
            blocks.append(_manifest_table(caption, values))
    return Section("making", "How it was made", tuple(blocks))


def _manifest_table(caption: str, values: Mapping[str, Any]) -> Table:
    flat = flatten(values)
    shown = pd.DataFrame({"field": list(flat), "value": [_value_text(value) for value in flat.values()]}, dtype="str")
    return Table(caption, shown, left=frozenset({"value"}))


def _value_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} … ({len(text):,} characters)"
