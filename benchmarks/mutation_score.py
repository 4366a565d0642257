"""Which share of small faults in the lab's innermost parts its own tests notice; printed, one line for each part.

    python benchmarks/mutation_score.py [faults a part, 12 if left out] [seed, 7] [parts, all]

A fault is one comparison, operator, constant or condition turned into another, drawn from all of a part's by a seed,
put into the file, tested, and taken out again. A fault that no test notices is printed with its line. Tests of the wall
clock are left out: on a busy machine they fail by themselves. Run it in a clone that nobody else works in.
"""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "docmind_lab"
TESTS = PACKAGE.parent / "tests"
# Part → its sources and the tests that are to notice.
PARTS = {
    "core": (
        ["core"],
        ["test_deadlines.py", "test_budgets.py", "test_errors.py", "test_settings.py", "enforcement", "alternatives"],
    ),
    "network": (["network"], ["network", "own", "enforcement"]),
    "derive": (
        ["experiments/measurement/derive.py", "experiments/measurement/from_events.py"],
        ["test_derive.py", "test_measurement.py", "test_agreement.py"],
    ),
    "choice": (["findings/choice.py"], ["findings", "test_summary.py", "snapshots"]),
    "enforcement": (["alternatives/enforcement"], ["enforcement"]),
}
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not"}
OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
MARKS = "not full and not browser and not wall"
MOST_S = 900


def faults_of(file: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and the whole text with one fault, for each place that can have one."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = text.encode()

    def place(line: int, column: int) -> int:
        return starts[line - 1] + column

    for node in ast.walk(ast.parse(text)):
        changed = _changed(node)
        if changed is None:
            continue
        assert isinstance(node, ast.expr | ast.stmt)
        first = place(node.lineno, node.col_offset)
        last = place(node.end_lineno or node.lineno, node.end_col_offset or 0)
        yield file, node.lineno, (raw[:first] + changed.encode() + raw[last:]).decode()


def _changed(node: ast.AST) -> str | None:
    """Return the text of a node with a fault; None for a node that gets none."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        symbol = COMPARISONS[type(node.ops[0])]
        return f"({ast.unparse(node.left)} {symbol} {ast.unparse(node.comparators[0])})"
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return f"({ast.unparse(node.left)} {OPERATORS[type(node.op)]} {ast.unparse(node.right)})"
    if isinstance(node, ast.BoolOp):
        symbol = " or " if isinstance(node.op, ast.And) else " and "
        return f"({symbol.join(f'({ast.unparse(each)})' for each in node.values)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"bool({ast.unparse(node.operand)})"
    if isinstance(node, ast.Constant) and node.value in (True, False) and isinstance(node.value, bool):
        return str(not node.value)
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return "return None"
    return None


def is_noticed(file: Path, text: str, tests: list[str]) -> bool:
    """Whether a test fails with this text in the place of the file's."""
    kept = file.read_bytes()
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", MARKS]
    try:
        ended = subprocess.run(
            [*command, "-n", "2", *(str(TESTS / each) for each in tests)], capture_output=True, timeout=MOST_S
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_bytes(kept)
    return ended.returncode != 0


def main(count: str = "12", seed: str = "7", *parts: str) -> None:
    """Print the share of each part."""
    for part in parts or PARTS:
        sources, tests = PARTS[part]
        files = [file for each in sources for file in sorted((PACKAGE / each).rglob("*.py")) or [PACKAGE / each]]
        every = [fault for file in files for fault in faults_of(file)]
        drawn = random.Random(int(seed)).sample(every, min(int(count), len(every)))
        noticed = 0
        if is_noticed(files[0], files[0].read_text(encoding="utf-8"), tests):
            print(f"{part}: its tests fail without any fault, so they say nothing", flush=True)
            continue
        for file, line, text in drawn:
            is_one = is_noticed(file, text, tests)
            noticed += is_one
            if not is_one:
                print(f"  not noticed: {file.relative_to(PACKAGE)}:{line}", flush=True)
        print(f"{part}: {noticed} of {len(drawn)} faults noticed, of {len(every)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
