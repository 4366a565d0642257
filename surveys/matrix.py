"""The pages and the figure of what was measured, made of the published cells.

python -m surveys page      # rows in data/ → the file of cells, docs/does-it-stop*.md and the figure
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import join_names, markdown_table
from docmind_lab.core.whole_files import as_bytes, as_text, write_or_refuse
from docmind_lab.views.plots import look
from surveys.agent_services import LASTS_S
from surveys.agent_table import TOLERANCE_S, AgentRow
from surveys.agents import LIMIT_S, TIMEOUT_S
from surveys.case_files import Case, read_cases
from surveys.published import FALLS_INTO, Cell, Published, read_all, write_published

PAGE: Final = Path("docs", "does-it-stop.md")
CLIENTS_PAGE: Final = Path("docs", "timeouts.md")
CELLS_PAGE: Final = Path("docs", "does-it-stop-cells.md")
FIGURE: Final = Path("docs", "images", "does-it-stop.png")

# Five that many people use, as the page's first answer; each by the names of its cells.
FIRST: Final = ("LangGraph", "LangChain create_agent", "OpenAI Agents SDK", "Pydantic AI", "CrewAI")
_SHOWN_FIRST: Final = ("model call", "sync tool", "async tool", "sub-agent")

_WORST: Final = ("stopped", "caller only", "neither", "error")
# Tints of Okabe and Ito's blue, orange and vermilion, apart in lightness as well as in hue, with ink readable on all.
COLOURS: Final[dict[str, str]] = {
    "stopped": "#DCEBF5",
    "caller only": "#F5C26B",
    "neither": "#E0703A",
    "error": "#BDBDBD",
}
"""Colour of each mark of an agent."""
_LEGEND: Final[dict[str, str]] = {
    "stopped": "stopped: the caller is free and the work has ended",
    "caller only": "caller only: the caller is free, the work went on (+1: a call began)",
    "neither": "neither: the caller had to wait longer",
    "error": "error: it ended in another way",
}
# What still went on when it was no longer watched is at least so long.
_WATCHED_S = LIMIT_S - 1.0


# ---- a cell in words


def cell_text(cell: Cell) -> str:
    """A cell in words, as "**caller only**, 4.1 s of work, 1 call"."""
    parts = [f"**{cell.mark}**" + (f" in {cell.marked} of {cell.runs}" if cell.marked < cell.runs else "")]
    if cell.mark == "neither":
        parts.append("no end" if cell.late_s is None else f"{cell.late_s:.1f} s late")
    if cell.mark in ("caller only", "neither") and (cell.work_s or 0.0) > TOLERANCE_S:
        parts.append(f"{_work_text(cell.work_s or 0.0)} of work")
    if cell.mark in ("caller only", "neither") and cell.calls:
        parts.append(f"{cell.calls} call{'s' if cell.calls > 1 else ''}")
    if cell.mark == "at its next write" and cell.work_s is not None:
        parts.append(f"within {cell.work_s:.2f} s")
    if cell.mark == "went on" and cell.work_s is not None:
        parts.append(f"{cell.work_s:.1f} s of work")
    if cell.kind != "agent" and cell.mark == "stopped" and cell.work_s is not None:
        parts.append(f"within {max(cell.work_s, 0.01):.2f} s")
    if cell.mark == "gave up":
        parts[0] += f" after {cell.waits_s:,.0f} s"
    if cell.mark == "never":
        parts[0] += " within an hour"
    if (cell.mark == "unknown" or cell.kind == "client") and cell.note:
        parts.append(cell.note)
    return ", ".join(parts)


def _work_text(work_s: float) -> str:
    return f"> {_WATCHED_S:.0f} s" if work_s >= _WATCHED_S else f"{work_s:.1f} s"


def _linked(cell: Cell, text: str = "") -> str:
    return f"[{text or cell_text(cell)}]({CELLS_PAGE.name}#{cell.id})"


# ---- the page


def page_parts(file: Published, rows: Sequence[AgentRow], cases: Sequence[Case]) -> dict[str, str]:
    """What the page has from the file, by the names of its marks.

    Args:
        file: The published cells.
        rows: All runs of agents, for what they left behind.
        cases: The cases, for what others report.
    """
    agents = file.of("agent")
    days = sorted({cell.measured_on for cell in file.cells})
    runs = min(cell.runs for cell in file.cells)
    measured = f"Version {file.version}. Measured from {days[0]} to {days[-1]}, {runs} runs or more of each cell."
    return {
        "first": _first_table(agents),
        "agents": "\n\n".join(
            [
                measured,
                "Frameworks: " + " · ".join(f"[{name}](#{_anchor(name)})" for name in _names(agents)),
                *(_section(name, [cell for cell in agents if cell.name == name]) for name in _names(agents)),
            ]
        ),
        "left": "\n\n".join(
            part
            for part in (
                _listed("Cells that ended in another way", _errors(agents)),
                _listed("Processes that could not end, and were killed", _stuck(rows)),
                _listed("Conversations that are left with a tool call without its result", _open_calls(rows)),
                _listed("Not measured", [f"{absent.name}: {absent.reason}" for absent in file.not_measured]),
                _listed(
                    "What others report",
                    [f"{case.framework}: {', '.join(case.issues)}" for case in cases if case.issues],
                ),
            )
            if part
        ),
        "servers": _phases("server", file),
        "gateways": _phases("gateway", file),
        "tools": _tools(file),
    }


def _names(cells: Sequence[Cell]) -> list[str]:
    return sorted({cell.name for cell in cells}, key=str.lower)


def _anchor(name: str) -> str:
    return "".join(character if character.isalnum() or character == "_" else "-" for character in name.lower())


def _ways(cells: Sequence[Cell]) -> dict[str, dict[str, Cell]]:
    """Way → what it falls into → cell."""
    ways: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        ways.setdefault(cell.way, {})[cell.falls_into] = cell
    return ways


def _first_table(agents: Sequence[Cell]) -> str:
    rows = []
    for name in FIRST:
        for way, cells in _ways([cell for cell in agents if cell.name == name and cell.whose == "framework"]).items():
            marks = (_linked(cells[each], f"{cells[each].mark}") if each in cells else "" for each in _SHOWN_FIRST)
            rows.append([f"**{name}** `{way}`", *marks])
    return markdown_table(["its own timeout", *_SHOWN_FIRST], rows, left=range(5))


def _section(name: str, cells: Sequence[Cell]) -> str:
    ways = _ways(cells)
    lines = []
    for number, (way, of_way) in enumerate(ways.items(), 1):
        first = next(iter(of_way.values()))
        lines.append(f"{number}. [`{way}`]({first.docs}), {_WHOSE_WORDS[first.whose]}")
    rows = [
        [each, *(_linked(of_way[each]) if each in of_way else "" for of_way in ways.values())]
        for each in FALLS_INTO.values()
        if any(each in of_way for of_way in ways.values())
    ]
    table = markdown_table(["falls into", *map(str, range(1, len(ways) + 1))], rows, left=range(1 + len(ways)))
    versions = join_names(sorted({cell.version for cell in cells}))
    return f"### {name}\n\n{versions}.\n\n" + "\n".join(lines) + f"\n\n{table}"


_WHOSE_WORDS: Final = {"framework": "its own", "language": "of the language", "this lab": "of this lab"}


def _phases(kind: str, file: Published) -> str:
    """A table with a row for each server or gateway, and a column for each phase in which its calls are left."""
    cells = [cell for cell in file.cells if cell.kind == kind]
    phases = list(dict.fromkeys(cell.falls_into for cell in cells))
    rows = []
    for name in dict.fromkeys(cell.name for cell in cells):
        of_name = {cell.falls_into: cell for cell in cells if cell.name == name}
        version = next(iter(of_name.values())).version
        rows.append([f"{name} {version}", *(_linked(of_name[phase]) if phase in of_name else "" for phase in phases)])
    return markdown_table([kind, *phases], rows, left=range(1 + len(phases)))


def clients_table(file: Published) -> str:
    """A table with a row for each client that waits, and what it waits for."""
    return _phases("client", file)


def _tools(file: Published) -> str:
    rows = [
        [f"{cell.name} ({cell.version})", cell.way, _linked(cell), f"{cell.late_s:.2f} s"] for cell in file.of("tool")
    ]
    return markdown_table(
        ["tool", "the caller gives up by", "the work", "the caller goes on after"], rows, left=range(3)
    )


def _listed(heading: str, entries: Sequence[str]) -> str:
    return f"{heading}:\n\n" + "\n".join(f"- {entry}" for entry in entries) if entries else ""


def _errors(agents: Sequence[Cell]) -> list[str]:
    return [
        f"{cell.name}, {cell.way}, {cell.falls_into}: `{cell.note.replace('`', chr(39))}`"
        for cell in agents
        if cell.mark == "error"
    ]


def _stuck(rows: Sequence[AgentRow]) -> list[str]:
    return _by_way([row for row in rows if row.exited is False])


def _open_calls(rows: Sequence[AgentRow]) -> list[str]:
    return _by_way([row for row in rows if row.left and (json.loads(row.left).get("open_tool_calls") or 0) > 0])


def _by_way(rows: Sequence[AgentRow]) -> list[str]:
    faults: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        faults.setdefault((row.framework, row.title), []).append(FALLS_INTO[row.fault])
    return [
        f"{framework}, {title}: {', '.join(dict.fromkeys(of))}" for (framework, title), of in sorted(faults.items())
    ]


def cells_page(file: Published) -> str:
    """The page with the address of each cell: its mark, runs, version, day and the command that repeats it."""
    names = dict.fromkeys((cell.kind == "client", cell.name) for cell in file.cells)
    lines = [
        "# Does it stop? Every cell",
        "",
        "Each line is one cell of [the tables](does-it-stop.md), with its version, its runs, its day and the command",
        "that repeats it. [How to dispute one](does-it-stop-method.md#dispute-a-cell).",
    ]
    for is_client, name in names:
        lines += ["", f"## {name} as a client" if is_client else f"## {name}", ""]
        lines += [_cell_line(cell) for cell in file.cells if (cell.kind == "client", cell.name) == (is_client, name)]
    return "\n".join(lines) + "\n"


def _cell_line(cell: Cell) -> str:
    where = f"{cell.way}: {cell.falls_into}" if cell.way else cell.falls_into
    runs = f"{cell.runs} runs" if cell.runs > 1 else "1 run"
    evidence = f"{cell.version}, {runs}, {cell.measured_on}. `{cell.command}`"
    return f'- <a id="{cell.id}"></a>{where}: {cell_text(cell)}. {evidence}'


def with_parts(page: str, parts: dict[str, str]) -> str:
    """The page with its generated parts replaced. Raises: ConfigurationError without the marks of one."""
    for name, part in parts.items():
        begin, end = f"<!-- {name}: written by `make probe` -->", f"<!-- end of {name} -->"
        before, has_begin, rest = page.partition(begin)
        _, has_end, after = rest.partition(end)
        if not has_begin or not has_end:
            raise ConfigurationError(f"the page needs the lines {begin} and {end}")
        page = f"{before}{begin}\n\n{part.rstrip()}\n\n{end}{after}"
    return page


# ---- the figure


def matrix(cells: Iterable[Cell], ax: Axes | None = None) -> Axes:
    """Draw the matrix: a row for each framework and way, a column for each fault, those that stop most often on top.

    Args:
        cells: Those of agents.
        ax: Axes to draw on; new ones when None.

    Raises: ConfigurationError when nothing was measured.
    """
    agents = list(cells)
    if not agents:
        raise ConfigurationError("there are no measured rows: run python -m surveys agents --out data/agent_probes")
    columns = [each for each in FALLS_INTO.values() if any(cell.falls_into == each for cell in agents)]
    of_way: dict[tuple[str, str], list[Cell]] = {}
    for cell in agents:
        of_way.setdefault((cell.name, cell.way), []).append(cell)
    ways = sorted(of_way, key=lambda way: (_badness(of_way[way]), -len(of_way[way])))
    ax = look.axes_for(ax or look.OFFSCREEN, 13.0, 2.2 + 0.3 * len(ways))
    for line, way in enumerate(ways):
        for cell in of_way[way]:
            column = columns.index(cell.falls_into)
            colour = COLOURS[cell.mark]
            ax.add_patch(
                Rectangle((column - 0.5, line - 0.5), 1, 1, facecolor=colour, edgecolor=look.PAPER, lw=2, gid=cell.id)
            )
            ax.text(column, line, _short(cell), fontsize=look.SMALL_PT, color=look.INK, ha="center", va="center")
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(ways) - 0.5, -0.5)
    ax.set_xticks(range(len(columns)), [textwrap.fill(each, 10) for each in columns])
    ax.set_yticks(range(len(ways)), [f"{name} {of_way[name, way][0].version}: {way}" for name, way in ways])
    ax.tick_params(length=0)
    handles = [
        Patch(facecolor=COLOURS[mark], edgecolor=look.RULE, lw=0.5, label=_LEGEND[mark])
        for mark in _WORST
        if any(cell.mark == mark for cell in agents)
    ]
    look.legend_below(ax, handles, columns=2)
    numbers = "numbers: seconds of work after it (neither: of waiting)"
    context = f"{TIMEOUT_S:g} s of timeout into {LASTS_S:g} s of work · {numbers}"
    look.style(ax, "A timeout fires. Does the work stop?", context)
    return ax


def _badness(cells: Sequence[Cell]) -> float:
    return sum(_WORST.index(cell.mark) for cell in cells) / len(cells)


def _short(cell: Cell) -> str:
    if cell.mark == "neither":
        return "no end" if cell.late_s is None else f"{cell.late_s:.1f} s"
    if cell.mark != "caller only":
        return str(cell.mark)
    return _work_text(cell.work_s or 0.0) + (f" +{cell.calls}" if cell.calls else "")


def write_page(root: Path) -> None:
    """Write the file of cells, the pages and the figure of the rows in data/. root: folder of the project."""
    file = write_published(root)
    rows, cases = read_all(root / "data" / "agent_probes"), read_cases(root / "surveys" / "cases")
    text = with_parts((root / PAGE).read_text(encoding="utf-8"), page_parts(file, rows, cases))
    figure = look.png_of(matrix(file.of("agent")), dots_per_inch=85)
    write_or_refuse(root / FIGURE, as_bytes(figure))
    write_or_refuse(root / CELLS_PAGE, as_text(cells_page(file)))
    write_or_refuse(root / PAGE, as_text(text))
    clients = (root / CLIENTS_PAGE).read_text(encoding="utf-8")
    write_or_refuse(root / CLIENTS_PAGE, as_text(with_parts(clients, {"clients": clients_table(file)})))
