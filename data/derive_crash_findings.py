"""Run the crash test on the graphs of examples/crash and keep what it says.

    python data/derive_crash_findings.py                         # every graph, every durability: about half an hour
    python data/derive_crash_findings.py agent --durability sync  # replaces the rows of one graph
    python data/derive_crash_findings.py react_agent react_agent_v1 --checkpointer SqliteSaver --seeds 7 --runs 0

Writes data/crash_findings/runs.csv and findings.csv, and the tables of docs/findings/README.md.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.metadata
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docmind_lab.experiments.crash_test import CrashReport, crash_test
from docmind_lab.experiments.crash_test.crash_bench import DURABILITIES
from docmind_lab.systems.system_catalogue import Graph

ROOT = Path(__file__).parents[1]
ROWS, PAGE = ROOT / "data" / "crash_findings", ROOT / "docs" / "findings" / "README.md"
ALTERNATIVES, SEEDS = "A,C,D", (7, 8, 9)
QUESTIONS = ["How deep is Fairhaven?", "Book a berth in Northport for the Meridian, and write to its harbour master."]
RUNS = 120
IN_MEMORY = "InMemorySaver"
CHECKPOINTERS = {
    IN_MEMORY: ("", ALTERNATIVES),
    "SqliteSaver": ("sqlite", "A,D"),
    "AsyncSqliteSaver": ("async_sqlite", "C"),
    "PostgresSaver": ("postgres", "A,D"),
}
"""Name of a checkpointer → its function in examples/crash/savers.py, and the alternatives that can run on it."""
APPROVAL = {"agent_human": [{"decisions": [{"type": "approve"}]}]}
NO_GRAPHS = ("harbour_tools", "savers")
PACKAGES = {"react": "langgraph-prebuilt", "deep": "deepagents", "supervisor": "langgraph-supervisor"}
PACKAGES |= {"swarm": "langgraph-swarm", "agent": "langchain"}
PAGES = {
    "a provider refuses the conversation when the user goes on": "next-message-refused",
    "the user's next message fails": "next-message-refused",
    "is done twice": "tool-called-again",
    "a provider refuses the conversation when the run is resumed": "cancelled-call-skipped",
}
"""What the crash test says → the page that describes it; what has no page is in the table as not explained."""


def rows_of(key: Mapping[str, str], reports: Sequence[CrashReport]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row of a graph's crash tests, one with each seed, and the rows of what they found.

    Args:
        key: The graph, the durability and the checkpointer.
        reports: One for each seed.
    """
    package = PACKAGES[key["case"].partition("_")[0]]
    versions = {"version": importlib.metadata.version(package), "langgraph": importlib.metadata.version("langgraph")}
    coverage = [each for report in reports for each in report.coverage]
    tried: Counter[str] = Counter()
    for each in coverage:
        tried.update({kind: count for kind, (_, count) in each.kinds.items()})
    found: dict[str, dict[str, Any]] = {}
    for report in reports:
        for finding in report.findings:
            page = next((page for words, page in PAGES.items() if words in finding.what), "")
            first = {"first_by": finding.trial.alternative, "first_seed": report.seed}
            first |= {"first_input": QUESTIONS.index(finding.graph_input["messages"][0].content) + 1}
            first |= {"first_at_s": finding.trial.decision_timeout_s}
            row = dict(key) | {"page": page, "what": finding.what, "enforced_by": [], "runs": 0, "seeds": 0} | first
            row = found.setdefault(finding.what, row)
            row["enforced_by"] = sorted({*row["enforced_by"], *finding.alternatives})
            row["runs"] += finding.trials
            row["seeds"] += 1
    for row in found.values():
        row["enforced_by"] = " ".join(row["enforced_by"])
    row = dict(key) | {"package": package} | versions
    row |= {"seeds": " ".join(str(report.seed) for report in reports), "inputs": len(QUESTIONS)}
    row |= {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    row |= {"cut_points": sum(each.found for each in coverage), "runs": sum(report.trials for report in reports)}
    row |= {"kinds": len(tried), "least_tried": min(tried.values())}
    row |= {"not_judged": sum(each.not_judged[0] for each in coverage), "findings": len(found)}
    return row, sorted(found.values(), key=lambda each: -int(each["runs"]))


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of results; none if it is not there."""
    path = ROWS / name
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _key_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["case"], row["checkpointer"], row["durability"]


def keep(row: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> None:
    """Put the rows of a graph in the place of those that were there before."""
    for name, new in (("runs.csv", [row]), ("findings.csv", found)):
        others = [each for each in read(name) if _key_of(each) != _key_of(row)]
        rows = sorted([*others, *new], key=_key_of)
        if rows:
            with (ROWS / name).open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


def table() -> str:
    """Return the table of the page, from the kept rows."""
    heads = ("graph", "package", "checkpointer", "durability", "cut points", "runs", "found")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    found = read("findings.csv")
    for row in read("runs.csv"):
        mine = [each for each in found if _key_of(each) == _key_of(row)]
        lines.append(
            f"| `{row['case']}` | {row['package']} {row['version']} | {row['checkpointer']} | {row['durability']} "
            f"| {row['cut_points']} | {row['runs']} | {'; '.join(_shown(each) for each in mine) or 'nothing'} |"
        )
    return "\n".join(lines)


def _shown(found: Mapping[str, str]) -> str:
    words = re.sub(r"\(tool \w+\) ", "", found["what"])
    linked = f"[{words}]({found['page']}.md)" if found["page"] else f"{words} (not explained)"
    return f"{linked}, by {', '.join(found['enforced_by'].split())}: {found['runs']}"


def write_table() -> None:
    """Put the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition("| graph |")
    tail = rest.partition("\n\n")[2]
    PAGE.write_text(f"{head}{table()}\n\n{tail}", encoding="utf-8")


def main() -> None:
    """Run what the arguments name."""
    graphs = sorted(path.stem for path in (ROOT / "examples" / "crash").glob("*.py") if path.stem not in NO_GRAPHS)
    parser = argparse.ArgumentParser(description="Run the crash test on the graphs of examples/crash.")
    parser.add_argument("case", nargs="*", help=f"one of {', '.join(graphs)}; all when left out")
    parser.add_argument("--durability", choices=DURABILITIES, help="all three when left out")
    parser.add_argument("--checkpointer", choices=list(CHECKPOINTERS), default=IN_MEMORY)
    parser.add_argument("--workers", type=int, help="processes; one for each core when left out")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs with one seed; 0 for every cut point")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    given = parser.parse_args()
    maker, alternatives = CHECKPOINTERS[given.checkpointer]
    for case in given.case or graphs:
        for durability in [given.durability] if given.durability else DURABILITIES:
            reports = [
                crash_test(
                    Graph(f"{ROOT}/examples/crash/{case}.py:graph", QUESTIONS, resume=APPROVAL.get(case, [])),
                    alternatives=f"{alternatives},kill",
                    runs=given.runs or None,
                    seed=seed,
                    durability=durability,
                    checkpointer=f"{ROOT}/examples/crash/savers.py:{maker}" if maker else None,
                    workers=given.workers,
                )
                for seed in given.seeds
            ]
            row, found = rows_of({"case": case, "durability": durability, "checkpointer": given.checkpointer}, reports)
            keep(row, found)
            print(json.dumps(row), flush=True)
    write_table()


if __name__ == "__main__":
    main()
