"""Traces: runs of any agent, each a graph of calls with their times. No text is kept.

traces = Traces.read("traces.jsonl")
traces.runs         # one row per run
traces.spans        # one row per call, agent or step
traces.write("copy.jsonl")
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.text import count_of, join_names
from docmind_lab.core.whole_files import write_whole
from docmind_lab.tables.frames import rows_by, rows_of, rows_to_frame
from docmind_lab.tables.records import Column, Level, columns_of

SPAN_KINDS: Final = ("llm", "tool", "retrieval", "peer", "agent", "step")
"""What a span is. The last two hold others: an agent, and a step of a graph, at whose end a stop flag is looked at."""
CALL_KINDS: Final = ("llm", "tool", "retrieval", "peer")
"""The kinds of spans that are calls."""

OWN_ENDS: Final = ("answered", "failed", "interrupted")
"""How a run ends by itself. With any other outcome it was cut."""

SPAN_OUTCOMES: Final = ("ok", "error", "cut", "open")
"""How a span ended: by itself, with an error, by a limit or a cancellation, or not while anybody looked."""


@dataclass(frozen=True)
class TracedRun:
    """One run of an agent. Instants are seconds from its start."""

    trace_id: Annotated[str, "The run; the key of this table."]
    session: Annotated[str, "What runs that are not independent share: a conversation, a user, a seed."]
    source: Annotated[str, "Where the run was read from."]
    ended_at_s: Annotated[float, "The caller had the result, or the run had failed; NaN if neither was seen."]
    observed_until_s: Annotated[float, "How long anybody looked."]
    outcome: Annotated[str, "answered, failed, interrupted, or cut (by a limit).", Level((*OWN_ENDS, "cut"))]
    limit_s: Annotated[float, "The limit that cut the run; NaN where none did, or it is not known."] = NAN
    result_from_s: Annotated[float, "There was first something to return; NaN if never, or not known."] = NAN
    retries: Annotated[str, "Who retries, as the table `runs` of a study has it; empty where not known."] = ""
    adapts: Annotated[
        bool, "Its agent, or a service it calls, does other things with another deadline where it is told of it."
    ] = False
    labels: Annotated[str, "A JSON object of names: the condition that the run is of."] = "{}"


@dataclass(frozen=True)
class Span:
    """One call, agent or step of a run. Instants are seconds from the start of the run."""

    trace_id: Annotated[str, "The run that the span is of."]
    span_id: Annotated[str, "The span within its run."]
    parent_id: Annotated[str, "The span that this one was made inside of; empty at the top."]
    role: Annotated[str, "Who made the call, or the name of the agent."]
    kind: Annotated[str, "What it is.", Level(SPAN_KINDS)]
    started_at_s: Annotated[float, "It began."]
    ended_at_s: Annotated[float, "It ended, as its client saw it; NaN if it was not seen to end."]
    first_byte_at_s: Annotated[float, "First byte of the response; NaN if there was none, or it is not known."] = NAN
    outcome: Annotated[str, "How it ended.", Level(SPAN_OUTCOMES)] = "ok"
    attempt: Annotated[int, "Number of the request within its call, from 1."] = 1
    input_tokens: Annotated[float, "Tokens read; NaN where not known."] = NAN
    output_tokens: Annotated[float, "Tokens written; NaN where not known."] = NAN
    model: Annotated[str, "The model that was called; empty where not known."] = ""
    server_started_at_s: Annotated[float, "The server received it; NaN without a server's log."] = NAN
    server_ended_at_s: Annotated[float, "The server did the last thing for it; NaN if not while anybody looked."] = NAN
    queue_wait_s: Annotated[float, "It waited so long for a slot of the server, seconds."] = 0.0
    first_token_at_s: Annotated[float, "First token of the response; NaN if there was none, or it is not known."] = NAN


@dataclass(frozen=True)
class Generation:
    """One stretch in which a server generated tokens for a span, evenly."""

    trace_id: Annotated[str, "The run."]
    span_id: Annotated[str, "The span that the tokens are of."]
    begun_at_s: Annotated[float, "It began, in seconds from the start of the run."]
    ended_at_s: Annotated[float, "It ended."]
    tokens: Annotated[float, "How many tokens came."]


RUN_COLUMNS: Final[Sequence[Column]] = columns_of(TracedRun)
SPAN_COLUMNS: Final[Sequence[Column]] = columns_of(Span)
GENERATION_COLUMNS: Final[Sequence[Column]] = columns_of(Generation)


@dataclass(frozen=True, eq=False)
class Traces(ShownAsCode):
    """Runs with their spans, in tidy frames.

    Args:
        runs: One row per run; the columns are those of `TracedRun`.
        spans: One row per span, ordered by run and start; the columns are those of `Span`.
        generation: One row per stretch of generation; the columns are those of `Generation`. Empty where no server was
            asked: the tokens of a call then count as evenly spread from its first byte to its end.
        notes: What was left out or assumed in reading them, one sentence each.
    """

    runs: pd.DataFrame
    spans: pd.DataFrame
    generation: pd.DataFrame
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        runs: pd.DataFrame | Iterable[TracedRun | Mapping[str, Any]],
        spans: pd.DataFrame | Iterable[Span | Mapping[str, Any]],
        generation: pd.DataFrame | Iterable[Generation | Mapping[str, Any]] = (),
        notes: tuple[str, ...] = (),
    ) -> Traces:
        """Return checked traces, ordered by run and start.

        Args:
            runs: One row per run; rows, or a frame with their columns.
            spans: One row per span, in the same way.
            generation: One row per stretch of generation, in the same way.
            notes: What was left out or assumed.

        Raises:
            RecordError: A run has no end and no time of observation, a span belongs to no run or ends before it begins,
                or a value is negative. The message names the run and the span.
        """
        of_runs, of_spans, stretches = (
            _frame(columns, rows)
            for columns, rows in ((RUN_COLUMNS, runs), (SPAN_COLUMNS, spans), (GENERATION_COLUMNS, generation))
        )
        _check_runs(of_runs)
        _check_spans(of_runs, of_spans)
        order = pd.Series(np.arange(len(of_runs)), index=of_runs["trace_id"])
        by_start = of_spans.assign(_order=order[of_spans["trace_id"]].to_numpy()).sort_values(
            ["_order", "started_at_s"], kind="stable"
        )
        return cls(of_runs, by_start.drop(columns="_order").reset_index(drop=True), stretches, notes)

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        cut = int((self.runs["outcome"] == "cut").sum())
        sessions = count_of(self.runs["session"].nunique(), "session")
        head = f"{count_of(len(self.runs), 'run')} of {sessions}, {count_of(len(self.spans), 'span')}; {cut} cut"
        return "\n".join([head, *self.notes, *self._mixed_conditions()])

    def _mixed_conditions(self) -> list[str]:
        """Say which conditions the runs are of, where there are several: whatever is asked counts them together."""
        values: dict[str, set[str]] = {}
        for name, value in (label for each in self.runs["labels"] for label in json.loads(each).items()):
            values.setdefault(name, set()).add(str(value))
        values.pop("question_id", None)
        of_each = {name: join_names(sorted(found)) for name, found in values.items() if len(found) > 1}
        several = [f"{name.replace('_', ' ')} {names}" for name, names in of_each.items()]
        text = f"Runs of several conditions count together: {'; '.join(several)}. Traces.only(…) keeps those of one."
        return [text] if several else []

    def only(self, trace_ids: Iterable[str]) -> Traces:
        """Return the traces of these runs, in the order of this table.

        Args:
            trace_ids: Ids of runs.
        """
        ids = set(trace_ids)
        runs, spans, generation = (
            frame[frame["trace_id"].isin(ids)].reset_index(drop=True)
            for frame in (self.runs, self.spans, self.generation)
        )
        return Traces(runs, spans, generation, self.notes)

    # ---- files

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the traces, one JSON object a line, one line a run; the file is there whole or not at all.

        Args:
            path: The file.
        """
        file = Path(path)

        def lines(target: str) -> None:
            with Path(target).open("w", encoding="utf-8") as out:
                out.writelines(f"{json.dumps(each, allow_nan=False)}\n" for each in self._objects())

        write_whole(file, lines)
        return file

    def _objects(self) -> Iterator[dict[str, Any]]:
        spans, generation = rows_by(self.spans, "trace_id"), rows_by(self.generation, "trace_id")
        for run in rows_of(self.runs):
            of_run, stretches = (
                [_plain(row, "trace_id") for row in rows.get(run["trace_id"], [])] for rows in (spans, generation)
            )
            yield _plain(run) | {"spans": of_run} | ({"generation": stretches} if stretches else {})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Traces:
        """Read traces that `write` wrote.

        Args:
            path: The file.

        Raises:
            RecordError: The file cannot be read, or a line is no trace; the message names the line.
        """
        file = Path(path)
        runs: list[dict[str, Any]] = []
        try:
            with file.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        runs.append(_read_line(line, f"{file}, line {number}"))
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(f"{file} cannot be read ({error}); name a file that `traces import` wrote") from error
        if not runs:
            raise RecordError(f"{file} holds no trace; name a file that `traces import` wrote")
        spans, generation = ([row for run in runs for row in run[name]] for name in ("spans", "generation"))
        return cls.of(runs, spans, generation)


def _frame(columns: Sequence[Column], rows: pd.DataFrame | Iterable[Any]) -> pd.DataFrame:
    if isinstance(rows, pd.DataFrame):
        return rows.reset_index(drop=True)
    texts = {column.name for column in columns if column.kind == "text"}
    plain = (row if isinstance(row, Mapping) else vars(row) for row in rows)
    return rows_to_frame(
        columns,
        [{name: well_formed(value) if name in texts else value for name, value in row.items()} for row in plain],
    )


def _plain(row: Mapping[str, Any], *leave_out: str) -> dict[str, Any]:
    """Return a row without what is not known."""
    return {
        name: value
        for name, value in row.items()
        if name not in leave_out
        and not (isinstance(value, float) and math.isnan(value))
        and value not in ("", "[]", "{}")
    }


def _model_of(record: type[Any], **others: Any) -> type[BaseModel]:
    """Return the model of a record in a file, which leaves out what is not known. others: fields beside its columns."""
    kinds = {"text": str, "bool": bool, "int": int, "float": Annotated[float, Field(allow_inf_nan=False)]}
    columns: dict[str, Any] = {
        column.name: (
            Literal[column.levels] if column.levels else kinds[column.kind],
            _NOT_KNOWN.get(column.name, ... if column.before is None else column.before),
        )
        for column in columns_of(record)
    }
    fields = columns | dict.fromkeys(_NOT_READ, (Any, None)) | others
    return create_model(record.__name__, __config__=ConfigDict(extra="forbid", coerce_numbers_to_str=True), **fields)


_NOT_KNOWN: Final = {"ended_at_s": NAN, "parent_id": "", "server_ended_at_s": NAN}
# Fields that older files have, and that nothing reads any more.
_NOT_READ: Final = ("good_from_s", "succeeded", "after")
_OF_RUN: Final = {"trace_id": (str, "")}
_LINE: Final = _model_of(
    TracedRun,
    spans=(list[_model_of(Span, **_OF_RUN)], ...),  # type: ignore[misc]
    generation=(list[_model_of(Generation, **_OF_RUN)], []),  # type: ignore[misc]
)


def _read_line(line: str, where: str) -> dict[str, Any]:
    """Return the run of a line, with its spans and its stretches. Raises: RecordError naming the field."""
    try:
        run = _LINE.model_validate_json(line).model_dump()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise RecordError(f"{': '.join([where, *map(str, first['loc'])])}: {first['msg']}") from error
    inner = {name: [row | {"trace_id": run["trace_id"]} for row in run[name]] for name in ("spans", "generation")}
    return run | inner


def _refuse(frame: pd.DataFrame, is_bad: pd.Series[bool], words: str) -> None:
    """Return if no row is bad; else raise RecordError with the words, whose fields are those of the first bad row."""
    if is_bad.any():
        raise RecordError(words.format_map(frame[is_bad].iloc[0]))


def _check_runs(runs: pd.DataFrame) -> None:
    _refuse(runs, runs["trace_id"].duplicated(), "run {trace_id} is there twice; give each run a trace_id of its own")
    for name in ("ended_at_s", "observed_until_s"):
        is_bad = (runs[name] < 0) | np.isinf(runs[name])
        _refuse(runs, is_bad, f"run {{trace_id}}: {name} is {{{name}:g}}; it must be 0 or more")
    is_blind = runs["observed_until_s"].isna()
    _refuse(runs, is_blind, "run {trace_id}: observed_until_s is not known; say how long it was watched")


def _check_spans(runs: pd.DataFrame, spans: pd.DataFrame) -> None:
    is_strange = ~spans["trace_id"].isin(runs["trace_id"])
    _refuse(spans, is_strange, "span {span_id} belongs to run {trace_id}, which is not there")
    is_twice = spans.duplicated(["trace_id", "span_id"])
    _refuse(spans, is_twice, "run {trace_id}: span {span_id} is there twice")
    is_endless = spans[["started_at_s", "ended_at_s"]].isin([np.inf, -np.inf]).any(axis=1)
    _refuse(spans, is_endless, "run {trace_id}: span {span_id} has an instant that is infinite")
    _refuse(
        spans,
        (spans["ended_at_s"] < spans["started_at_s"]) | spans["started_at_s"].isna(),
        "run {trace_id}: span {span_id} ends ({ended_at_s:g} s) before it begins ({started_at_s:g} s)",
    )


# ---- what other tools write, and what is inside of what

# What has more digits is larger than any float.
_MOST_DIGITS: Final = 308
DECODER: Final = json.JSONDecoder(parse_int=lambda text: int(text) if len(text) <= _MOST_DIGITS else float(text))
"""Decodes JSON; a whole number that no float can hold is infinite, as 1e400 is."""


def well_formed(text: str) -> str:
    """Return a text with a question mark for each half of a UTF-16 pair, which no file can hold.

    text: any text, such as JSON writes as "\\ud800".
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_Key = TypeVar("_Key", bound=Hashable)


def upwards(first: _Key | None, above: Callable[[_Key], _Key | None]) -> Iterator[_Key]:
    """Yield a key and those above it, each once, also where one is above itself.

    first: the key to begin with; None for nothing. above: returns the key above another, or None.
    """
    visited = set[_Key]()
    while first is not None and first not in visited:
        visited.add(first)
        yield first
        first = above(first)
