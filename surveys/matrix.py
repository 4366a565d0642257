"""What is published of the agent probes: a part of docs/does-it-stop.md and its figure, made of the measured rows.

python -m surveys page      # data/agent_probes/*.csv → page and figure
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_bytes, as_text, write_or_refuse
from docmind_lab.views.plots import look
from surveys.agent_services import AGENT_FAULTS, LASTS_S
from surveys.agent_table import TOLERANCE_S, AgentRow, Mark, read_rows
from surveys.agents import LIMIT_S, TIMEOUT_S
from surveys.case_files import Case, read_cases

BEGIN: Final = "<!-- The part up to the end mark is written by `make probe`. -->"
END: Final = "<!-- end of what `make probe` writes -->"

_WORST: Final[tuple[Mark, ...]] = ("stopped", "caller only", "neither", "error")
# Tints of Okabe and Ito's blue, orange and vermilion, apart in lightness as well as in hue, with ink readable on all.
COLOURS: Final[dict[str, str]] = {
    "stopped": "#DCEBF5",
    "caller only": "#F5C26B",
    "neither": "#E0703A",
    "error": "#BDBDBD",
}
"""Colour of each mark."""
_LEGEND: Final[dict[str, str]] = {
    "stopped": "stopped: the caller is free and the work has ended",
    "caller only": "caller only: the caller is free, the work went on",
    "neither": "neither: the caller had to wait longer",
    "error": "error: it ended in another way",
}
_HEADINGS: Final[dict[str, str]] = {
    "ordinary": "model call",
    "stream": "stream",
    "hang": "call that hangs",
    "trickle": "trickling answer",
    "retry": "wait to retry",
    "sync_tool": "sync tool",
    "async_tool": "async tool",
    "sub_agent": "sub-agent",
}
_WHOSE: Final[dict[str, str]] = {"own": "framework", "language": "language", "enforce": "this lab"}
# What still went on when it was no longer watched is at least so long.
_WATCHED_S = LIMIT_S - 1.0


def cells_frame(rows: Iterable[AgentRow]) -> pd.DataFrame:
    """The cells of the matrix: one row for each case, way and fault, of all its repeats.

    Columns: case, framework, version, way, title, means, fault; runs; mark (the worst of the repeats), marked (how many
    repeats have it); late_s, work_s (seconds of model and tool after the timeout), calls (model calls and tools that
    began after it), each the largest of the repeats with that mark, late_s None for a caller that got no end; error.
    """
    groups: dict[tuple[str, str, str], list[AgentRow]] = {}
    for row in rows:
        if row.mark != "not measured":
            groups.setdefault((row.case, row.way, row.fault), []).append(row)
    return pd.DataFrame([_cell(repeats) for repeats in groups.values()])


def _cell(repeats: Sequence[AgentRow]) -> dict[str, Any]:
    first = repeats[0]
    mark = max((row.mark for row in repeats), key=_WORST.index)
    marked = [row for row in repeats if row.mark == mark]
    lateness = [row.late_s for row in marked]
    return {
        "case": first.case,
        "framework": first.framework,
        "version": first.version,
        "way": first.way,
        "title": first.title,
        "means": first.means,
        "fault": first.fault,
        "runs": len(repeats),
        "mark": mark,
        "marked": len(marked),
        "late_s": None if None in lateness else max(filter(None, lateness), default=0.0),
        "work_s": max((row.model_s_after or 0.0) + (row.tool_s_after or 0.0) for row in marked),
        "calls": max((row.model_calls_after or 0) + (row.tools_after or 0) for row in marked),
        "error": next((row.error for row in marked if row.error), ""),
    }


def cell_text(cell: Any) -> str:
    """A cell of the matrix in words, as "caller only, 4.1 s of work, 1 call". cell: a row of `cells_frame`."""
    parts = [f"**{cell.mark}**"]
    if cell.marked < cell.runs:
        parts[0] += f" in {cell.marked} of {cell.runs}"
    if cell.mark == "neither":
        is_endless = cell.late_s is None or pd.isna(cell.late_s)
        parts.append("no end" if is_endless else f"{cell.late_s:.1f} s late")
    if cell.mark in ("caller only", "neither") and cell.work_s > TOLERANCE_S:
        parts.append(f"{_work_text(cell.work_s)} of work")
    if cell.mark in ("caller only", "neither") and cell.calls:
        parts.append(f"{cell.calls} call{'s' if cell.calls > 1 else ''}")
    return ", ".join(parts)


def _work_text(work_s: float) -> str:
    return f"> {_WATCHED_S:.0f} s" if work_s >= _WATCHED_S else f"{work_s:.1f} s"


def page_part(rows: Sequence[AgentRow], cases: Sequence[Case]) -> str:
    """What the page says of the agents, in Markdown.

    Args:
        rows: All that were measured.
        cases: The cases, for the addresses of their documentation.
    """
    cells = cells_frame(rows)
    of_case = {case.name: case for case in cases}
    faults = [fault for fault in AGENT_FAULTS if not cells.empty and fault in set(cells["fault"])]
    lines = [
        f"| framework | timeout | whose | {' | '.join(_HEADINGS[fault] for fault in faults)} |",
        "|---" * (3 + len(faults)) + "|",
    ]
    for (name, _way), of_way in cells.groupby(["case", "way"], sort=True) if faults else ():
        first = next(look.rows_of(of_way))
        texts = {cell.fault: cell_text(cell) for cell in look.rows_of(of_way)}
        framework = f"{first.framework} {first.version}"
        docs = f"[{framework}]({of_case[str(name)].docs})" if name in of_case else framework
        marks = " | ".join(texts.get(fault, "") for fault in faults)
        lines.append(f"| {docs} | {first.title} | {_WHOSE[first.means]} | {marks} |")
    repeats = sorted(set(cells["runs"])) if faults else []
    days = sorted({row.measured_on for row in rows if row.way})
    parts = [
        BEGIN,
        f"Measured {_from_to('on', 'from', days)}; runs of each cell: {_from_to('', '', repeats)}." if days else "",
        "![Which agents stop when their timeout fires](images/does-it-stop.png)" if faults else "",
        _listed("The frameworks' own timeouts, by the mark that they have most often", _own_timeouts(cells)),
        "\n".join(lines) if faults else "",
        _commands(rows, cases),
        _listed("Cells that ended in another way", _errors(cells)),
        _listed("Processes that could not end, and were killed", _stuck(rows)),
        _listed("Conversations that are left with a tool call without its result", _open_calls(rows)),
        _listed("Not measured", [f"{row.framework}: {row.error}" for row in rows if row.mark == "not measured"]),
        _listed("What others report", [f"{case.framework}: {', '.join(case.issues)}" for case in cases if case.issues]),
        END,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _own_timeouts(cells: pd.DataFrame) -> list[str]:
    """Which frameworks' own timeouts stop the work and which do not, by the mark that each has most often."""
    if cells.empty:
        return []
    lines: dict[str, list[str]] = {}
    for _, of_way in cells[cells["means"] == "own"].groupby(["case", "way"], sort=True):
        first = next(look.rows_of(of_way))
        counts = of_way["mark"].value_counts()
        mark = max(_WORST, key=lambda each: (counts.get(each, 0), _WORST.index(each)))
        others = [_HEADINGS[fault] for fault in of_way[of_way["mark"] != mark]["fault"]]
        but = f", not in {_and(others)}" if others else ""
        lines.setdefault(mark, []).append(f"{first.framework} `{first.title}`{but}")
    return [f"**{mark}**: {'; '.join(lines[mark])}" for mark in _WORST if mark in lines]


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _from_to(one: str, several: str, values: Sequence[object]) -> str:
    words = (one, values[0]) if len(values) == 1 else (several, values[0], "to", values[-1])
    return " ".join(str(word) for word in words if word)


def _commands(rows: Sequence[AgentRow], cases: Sequence[Case]) -> str:
    measured = {(row.case, row.way) for row in rows if row.way}
    if not measured:
        return ""
    ways = [
        f"`{case.name}` ({', '.join(f'`{way}`' for way in case.ways)})"
        for case in cases
        if any(name == case.name for name, _ in measured)
    ]
    return (
        "A cell is repeated with `python -m surveys agents CASE --way WAY --fault FAULT`; the faults are "
        f"{', '.join(f'`{fault}`' for fault in AGENT_FAULTS)}, the cases with their ways {', '.join(ways)}."
    )


def _listed(heading: str, entries: Sequence[str]) -> str:
    return f"{heading}:\n\n" + "\n".join(f"- {entry}" for entry in entries) if entries else ""


def _errors(cells: pd.DataFrame) -> list[str]:
    if cells.empty:
        return []
    return [
        f"{cell.framework}, {cell.title}, {_HEADINGS[cell.fault]}: {_code(cell.error)}"
        for cell in look.rows_of(cells[cells["mark"] == "error"].sort_values(["case", "way"]))
    ]


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"


def _stuck(rows: Sequence[AgentRow]) -> list[str]:
    return _by_way([row for row in rows if row.exited is False])


def _open_calls(rows: Sequence[AgentRow]) -> list[str]:
    return _by_way([row for row in rows if row.left and (json.loads(row.left).get("open_tool_calls") or 0) > 0])


def _by_way(rows: Sequence[AgentRow]) -> list[str]:
    faults: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        faults.setdefault((row.framework, row.title), []).append(_HEADINGS[row.fault])
    return [
        f"{framework}, {title}: {', '.join(dict.fromkeys(of))}" for (framework, title), of in sorted(faults.items())
    ]


def matrix(rows: Iterable[AgentRow], ax: Axes | None = None) -> Axes:
    """Draw the matrix: a row for each framework and way, a column for each fault, those that stop most often on top.

    Args:
        rows: All that were measured.
        ax: Axes to draw on; new ones when None.

    Raises: ConfigurationError when nothing was measured.
    """
    cells = cells_frame(rows)
    if cells.empty:
        raise ConfigurationError("there are no measured rows: run python -m surveys agents --out data/agent_probes")
    faults = [fault for fault in AGENT_FAULTS if fault in set(cells["fault"])]
    ways = list(_ways_in_order(cells))
    ax = look.axes_for(ax or look.OFFSCREEN, 12.0, 2.2 + 0.3 * len(ways))
    for cell in look.rows_of(cells):
        column, line = faults.index(cell.fault), ways.index((cell.case, cell.way))
        name = f"cell:{cell.case}:{cell.way}:{cell.fault}"
        colour = COLOURS[cell.mark]
        ax.add_patch(
            Rectangle((column - 0.5, line - 0.5), 1, 1, facecolor=colour, edgecolor=look.PAPER, lw=2, gid=name)
        )
        ax.text(column, line, _short(cell), fontsize=look.SMALL_PT, color=look.INK, ha="center", va="center")
    ax.set_xlim(-0.5, len(faults) - 0.5)
    ax.set_ylim(len(ways) - 0.5, -0.5)
    ax.set_xticks(range(len(faults)), [textwrap.fill(_HEADINGS[fault], 10) for fault in faults])
    ax.set_yticks(range(len(ways)), [_label(cells, *way) for way in ways])
    ax.tick_params(length=0)
    handles = [
        Patch(facecolor=COLOURS[mark], edgecolor=look.RULE, lw=0.5, label=_LEGEND[mark])
        for mark in _WORST
        if mark in set(cells["mark"])
    ]
    look.legend_below(ax, handles, columns=2)
    numbers = "numbers: seconds of work after it (neither: of waiting)"
    context = f"{TIMEOUT_S:g} s of timeout into {LASTS_S:g} s of work · {numbers} · +1: a call began"
    look.style(ax, "A timeout fires. Does the work stop?", context)
    return ax


def _ways_in_order(cells: pd.DataFrame) -> list[tuple[str, str]]:
    badness = cells.assign(rank=[_WORST.index(mark) for mark in cells["mark"]])
    ranks = badness.groupby(["case", "way"], sort=True)["rank"].agg(["mean", "count"])
    order = ranks.sort_values(["mean", "count"], ascending=[True, False], kind="stable")
    return [(str(case), str(way)) for case, way in order.index]


def _label(cells: pd.DataFrame, case: str, way: str) -> str:
    first = next(look.rows_of(cells[(cells["case"] == case) & (cells["way"] == way)]))
    return f"{first.framework} {first.version}: {first.title}"


def _short(cell: Any) -> str:
    if cell.mark == "neither":
        return "no end" if cell.late_s is None or pd.isna(cell.late_s) else f"{cell.late_s:.1f} s"
    if cell.mark != "caller only":
        return str(cell.mark)
    calls = f" +{cell.calls}" if cell.calls else ""
    return f"{_work_text(cell.work_s)}{calls}"


def with_part(page: str, part: str) -> str:
    """The page with its generated part replaced. Raises: ConfigurationError without the two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigurationError(f"the page needs the lines {BEGIN} and {END}")
    return before + part.rstrip("\n") + after


def read_all(folder: Path) -> list[AgentRow]:
    """The rows of all tables of a folder, by case. Raises: ConfigurationError for a table that cannot be read."""
    return [row for path in sorted(folder.glob("*.csv")) for row in read_rows(path)]


def write_page(root: Path) -> None:
    """Write the page and the figure of the rows in data/agent_probes. root: folder of the project."""
    rows, cases = read_all(root / "data" / "agent_probes"), read_cases(root / "surveys" / "cases")
    page = root / "docs" / "does-it-stop.md"
    text = with_part(page.read_text(encoding="utf-8"), page_part(rows, cases))
    write_or_refuse(
        root / "docs" / "images" / "does-it-stop.png", as_bytes(look.png_of(matrix(rows), dots_per_inch=85))
    )
    write_or_refuse(page, as_text(text))
