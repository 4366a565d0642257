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
from typing import Annotated, Any, Final, TypeVar

import numpy as np
import pandas as pd

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.text import count_of
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
        runs: Iterable[TracedRun | Mapping[str, Any]],
        spans: Iterable[Span | Mapping[str, Any]],
        generation: Iterable[Generation | Mapping[str, Any]] = (),
        notes: tuple[str, ...] = (),
    ) -> Traces:
        """Return checked traces, ordered by run and start.

        Args:
            runs: One row per run.
            spans: One row per span.
            generation: One row per stretch of generation.
            notes: What was left out or assumed.

        Raises:
            RecordError: A run has no end and no time of observation, a span belongs to no run or ends before it begins,
                or a value is negative. The message names the run and the span.
        """
        return cls.of_frames(
            _frame(RUN_COLUMNS, runs), _frame(SPAN_COLUMNS, spans), _frame(GENERATION_COLUMNS, generation), notes
        )

    @classmethod
    def of_frames(
        cls, runs: pd.DataFrame, spans: pd.DataFrame, generation: pd.DataFrame, notes: tuple[str, ...] = ()
    ) -> Traces:
        """Return checked traces from frames with the columns of the three tables.

        The parameters are those of `of`, and so are the errors.
        """
        _check_runs(runs)
        _check_spans(runs, spans)
        order = pd.Series(np.arange(len(runs)), index=runs["trace_id"])
        by_start = spans.assign(_order=order[spans["trace_id"]].to_numpy()).sort_values(
            ["_order", "started_at_s"], kind="stable"
        )
        return cls(
            runs.reset_index(drop=True),
            by_start.drop(columns="_order").reset_index(drop=True),
            generation.reset_index(drop=True),
            notes,
        )

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        cut = int((self.runs["outcome"] == "cut").sum())
        sessions = count_of(self.runs["session"].nunique(), "session")
        head = f"{count_of(len(self.runs), 'run')} of {sessions}, {count_of(len(self.spans), 'span')}; {cut} cut"
        return "\n".join([head, *self.notes])

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
        spans: list[dict[str, Any]] = []
        generation: list[dict[str, Any]] = []
        try:
            with file.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        _read_line(line, f"{file}, line {number}", runs, spans, generation)
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(f"{file} cannot be read ({error}); name a file that `traces import` wrote") from error
        if not runs:
            raise RecordError(f"{file} holds no trace; name a file that `traces import` wrote")
        return cls.of(runs, spans, generation)


def _frame(columns: Sequence[Column], rows: Iterable[Any]) -> pd.DataFrame:
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


def _read_line(
    line: str,
    where: str,
    runs: list[dict[str, Any]],
    spans: list[dict[str, Any]],
    generation: list[dict[str, Any]],
) -> None:
    try:
        item = DECODER.decode(line.strip())
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where}: it is not JSON ({error})") from error
    if not isinstance(item, dict) or not isinstance(item.get("spans"), list):
        raise RecordError(f'{where}: it is no trace, which is an object with a list "spans"')
    runs.append(_row(TracedRun, {name: item[name] for name in item if name not in ("spans", "generation")}, where))
    trace_id = {"trace_id": runs[-1]["trace_id"]}
    spans += [_row(Span, {**_as_object(each, where), **trace_id}, where) for each in item["spans"]]
    stretches = item.get("generation", [])
    generation += [_row(Generation, {**_as_object(each, where), **trace_id}, where) for each in stretches]


def _as_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RecordError(f"{where}: a span must be an object, not {value!r:.60}")
    return value


_NOT_KNOWN: Final = {"ended_at_s": NAN, "parent_id": "", "server_ended_at_s": NAN}
# Fields that older files have, and that nothing reads any more.
_NOT_READ: Final = ("good_from_s", "succeeded", "after")


def _row(kind: type[Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values of a record by name. Raises: RecordError naming a field that cannot be used."""
    columns = {column.name: column for column in columns_of(kind)}
    unknown = [name for name in values if name not in (*columns, *_NOT_READ)]
    if unknown:
        raise RecordError(f"{where}: {kind.__name__} has no field {unknown[0]!r}; it has {', '.join(columns)}")
    row = {}
    for name, column in columns.items():
        value = values.get(name, _NOT_KNOWN.get(name, column.before))
        if value is None:
            raise RecordError(f"{where}: the field {name!r} of {kind.__name__} is missing")
        if column.kind in ("float", "int") and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise RecordError(f"{where}: {name} must be a number, not {value!r:.60}")
        if isinstance(value, float) and math.isinf(value):
            raise RecordError(f"{where}: {name} must be a finite number, not {value!r}")
        if column.levels and value not in column.levels:
            raise RecordError(f"{where}: {name} must be one of {', '.join(column.levels)}, not {value!r:.60}")
        row[name] = value if column.kind != "text" else str(value)
    return row


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
