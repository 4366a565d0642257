"""The table of an agent probe: one row for each case × way × fault × repeat, with its mark.

stopped         the caller had its end in time, nothing began after the timeout, and nothing went on
caller only     the caller had its end in time, and work began or went on
neither         the caller had to wait longer
error           the case broke, answered before its timeout, or ended in another way
not measured    the case cannot be run here
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_text, write_or_refuse
from surveys.agent_services import AGENT_FAULTS

Mark = Literal["stopped", "caller only", "neither", "error", "not measured"]
Outcome = Literal["answer", "timeout", "error"]

TOLERANCE_S: Final = 0.5
"""By so much a caller may be late, and work may go on, in a row that is marked as stopped.

What a timeout falls into lasts 4 s longer, and a busy machine pauses a process for tenths of a second at the most.
"""

# A timer of the case may have been set up a little before its start was read here.
_EARLY_S = 0.2


class AgentRow(BaseModel):
    """What one run of a case did.

    Args:
        case: Its name.
        framework: How its users call it.
        version: Of the framework.
        language: Of its program.
        way: How the timeout was set, by name.
        title: The same, as users call it.
        means: Whose timeout it is.
        fault: What the timeout fell into.
        repeat: Number of the run, from 1.
        timeout_s: The timeout, seconds.
        mark: See the module.
        ended_after_s: From the start to the caller's answer or error, seconds; None when neither came.
        late_s: From the instant of the timeout to the caller's answer or error, seconds.
        outcome: What the caller got, as the case says.
        error: What the caller got, or what went wrong, in words.
        model_calls_after: Model calls that began after the timeout.
        model_s_after: Seconds of model calls after the timeout, of all calls together.
        tokens_after: Tokens that the model generated after the timeout.
        tools_after: Executions of the tool that began after the timeout.
        tool_s_after: Seconds of the tool after the timeout, of all its executions together.
        exit_s: From the end of its standard input to the end of the process, seconds.
        exited: Whether the process ended by itself.
        left: What the framework leaves of the conversation, as JSON; empty where it shows nothing.
        measured_on: Day, as YYYY-MM-DD.
        command: What repeats the cell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    case: str
    framework: str
    version: str = ""
    language: str
    way: str = ""
    title: str = ""
    means: str = ""
    fault: str = ""
    repeat: int = 1
    timeout_s: float | None = None
    mark: Mark
    ended_after_s: float | None = None
    late_s: float | None = None
    outcome: Outcome | None = None
    error: str = ""
    model_calls_after: int | None = None
    model_s_after: float | None = None
    tokens_after: int | None = None
    tools_after: int | None = None
    tool_s_after: float | None = None
    exit_s: float | None = None
    exited: bool | None = None
    left: str = ""
    measured_on: str
    command: str

    @property
    def cell(self) -> tuple[str, str, str, int]:
        """Case, way, fault and repeat, of which a table has one row."""
        return self.case, self.way, self.fault, self.repeat

    @property
    def run(self) -> tuple[str, ...]:
        """The same with the version, as text."""
        return self.case, self.version, self.way, self.fault, str(self.repeat)


def mark_of(
    *, late_s: float | None, outcome: Outcome | None, begun_after: int, longest_after_s: float
) -> tuple[Mark, str]:
    """The mark of a run, and what is odd about it in words.

    Args:
        late_s: When the caller had its end, seconds from the timeout; None for never while it was watched.
        outcome: What the caller got.
        begun_after: Model calls and tool executions that began after the timeout.
        longest_after_s: Seconds for which the longest of all went on after the timeout.
    """
    if late_s is None or late_s > TOLERANCE_S:
        return "neither", ""
    if late_s < -_EARLY_S:
        return "error", f"it ended before its timeout, with {outcome}"
    if outcome != "timeout":
        return "error", f"it ended in time with {outcome}, not with its timeout"
    return ("caller only" if begun_after or longest_after_s > TOLERANCE_S else "stopped"), ""


def write_rows(path: Path, rows: Iterable[AgentRow]) -> None:
    """Write rows to a CSV file; those of cells that the file has already take their place.

    Raises: ConfigurationError when the file cannot be read or written.
    """
    new = list(rows)
    replaced = {row.case for row in new if not row.way}
    earlier = read_rows(path) if path.exists() else []
    kept = {row.cell: row for row in earlier if row.case not in replaced and (row.way or row.case not in _cases(new))}
    table = sorted((kept | {row.cell: row for row in new}).values(), key=_order)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(AgentRow.model_fields), lineterminator="\n")
    writer.writeheader()
    for row in table:
        writer.writerow({name: "" if value is None else value for name, value in row.model_dump().items()})
    write_or_refuse(path, as_text(text.getvalue()))


def _cases(rows: Iterable[AgentRow]) -> set[str]:
    return {row.case for row in rows}


def _order(row: AgentRow) -> tuple[str, str, int, int]:
    faults: tuple[str, ...] = AGENT_FAULTS
    return row.case, row.way, faults.index(row.fault) if row.fault in faults else -1, row.repeat


def read_rows(path: Path) -> list[AgentRow]:
    """The rows of a CSV file. Raises: ConfigurationError naming the line and the field that is wrong."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise ConfigurationError(f"{path} cannot be read ({error})") from error
    rows = []
    for number, line in enumerate(lines, 2):
        try:
            rows.append(AgentRow.model_validate({name: value for name, value in line.items() if value != ""}))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ConfigurationError(f"{path}, line {number}: {where}: {first['msg']}") from error
    return rows
