"""Run the crash test on the graphs of examples/crash and keep what it says.

    python data/derive_crash_findings.py                         # every graph, every durability: about half an hour
    python data/derive_crash_findings.py agent --durability sync  # replaces the rows of one graph

Writes data/crash_findings/runs.csv and findings.csv, and the table of docs/findings/README.md.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.metadata
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docmind_lab.experiments.crash_test import crash_test
from docmind_lab.experiments.crash_test.bench import DURABILITIES

ROOT = Path(__file__).parents[1]
ROWS, PAGE = ROOT / "data" / "crash_findings", ROOT / "docs" / "findings" / "README.md"
ALTERNATIVES, QUESTION, RUNS = "A,B,C,D", "How deep is Fairhaven?", {"async": 250, "sync": 150, "exit": 150}
APPROVAL = {"agent_human": [{"decisions": [{"type": "approve"}]}]}
PACKAGES = {"react": "langgraph-prebuilt", "deep": "deepagents", "supervisor": "langgraph-supervisor"}
PACKAGES |= {"swarm": "langgraph-swarm", "agent": "langchain"}
PAGES = {
    "a provider refuses the conversation when the user goes on": "next-message-refused",
    "the user's next message fails": "next-message-refused",
    "is done twice": "tool-called-again",
    "a provider refuses the conversation when the run is resumed": "cancelled-call-skipped",
}
"""What the crash test says → the page that describes it; what has no page is in the table as not explained."""


def rows_of(case: str, durability: str, report: Mapping[str, Any], date: str) -> tuple[dict[str, Any], list[Any]]:
    """Return the row of a run of the crash test, and the rows of its findings. report: `CrashReport.to_dict`."""
    package = PACKAGES[case.partition("_")[0]]
    versions = {"version": importlib.metadata.version(package), "langgraph": importlib.metadata.version("langgraph")}
    coverage = report["coverage"]
    key = {"case": case, "durability": durability}
    row = key | {"package": package} | versions
    row |= {"checkpointer": "InMemorySaver", "seed": report["seed"], "date": date}
    row |= {"cut_points": sum(each["found"] for each in coverage), "runs": report["trials"]}
    row |= {"not_judged": sum(each["not_judged"][0] for each in coverage), "findings": len(report["findings"])}
    return row, [
        key
        | {"page": next((page for words, page in PAGES.items() if words in found["what"]), ""), "what": found["what"]}
        | {"enforced_by": " ".join(found["alternatives"]), "runs": found["trials"]}
        | {"first_by": found["alternative"], "first_at_s": found["at_s"]}
        for found in report["findings"]
    ]


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of results; none if it is not there."""
    path = ROWS / name
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def keep(case: str, durability: str, row: Mapping[str, Any], found: list[Any]) -> None:
    """Put the rows of one run in the place of those that were there before."""
    for name, new in (("runs.csv", [row]), ("findings.csv", found)):
        others = [each for each in read(name) if (each["case"], each["durability"]) != (case, durability)]
        rows = sorted([*others, *new], key=lambda each: (each["case"], each["durability"]))
        with (ROWS / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def table() -> str:
    """Return the table of the page, from the kept rows."""
    lines = ["| graph | package | durability | cut points | runs | found |", "|---|---|---|---|---|---|"]
    found = read("findings.csv")
    for row in read("runs.csv"):
        mine = [each for each in found if (each["case"], each["durability"]) == (row["case"], row["durability"])]
        lines.append(
            f"| `{row['case']}` | {row['package']} {row['version']} | {row['durability']} | {row['cut_points']} "
            f"| {row['runs']} | {'; '.join(_shown(each) for each in mine) or 'nothing'} |"
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
    graphs = sorted(path.stem for path in (ROOT / "examples" / "crash").glob("*.py") if path.stem != "harbour_tools")
    parser = argparse.ArgumentParser(description="Run the crash test on the graphs of examples/crash.")
    parser.add_argument("case", nargs="*", help=f"one of {', '.join(graphs)}; all when left out")
    parser.add_argument("--durability", choices=DURABILITIES, help="all three when left out")
    given = parser.parse_args()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for durability in [given.durability] if given.durability else DURABILITIES:
        for case in given.case or graphs:
            reference, resume = f"{ROOT}/examples/crash/{case}.py:graph", APPROVAL.get(case, [])
            options = {"durability": durability, "resume": resume, "runs": RUNS[durability], "shrink": False}
            report = crash_test(reference, [QUESTION], alternatives=ALTERNATIVES, **options)  # type: ignore[arg-type]
            row, found = rows_of(case, durability, report.to_dict(), today)
            keep(case, durability, row, found)
            print(case, durability, json.dumps(row))
    write_table()


if __name__ == "__main__":
    main()
