"""Run the benchmarks that are named, or all of them, and print what they find: `python -m benchmarks imports`."""

from __future__ import annotations

import importlib
import sys
import time

from benchmarks.figures import table

NAMES = (
    "imports",
    "instrumentation",
    "handoffs",
    "coordination",
    "overrun",
    "agreement",
    "virtual_time",
    "one_core",
    "sweep",
    "traces",
    "tables",
    "panel",
    "workloads",
    "peers",
    "own_graph",
    "enforcement",
    "crash",
)


def main(chosen: list[str]) -> int:
    """0 when all have run, whether targets are met or not; 2 for a name that is not one of `NAMES`."""
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        print(f"no benchmark is named {unknown[0]!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in chosen or NAMES:
        benchmark = importlib.import_module(f"benchmarks.{name}")
        print(f"== {name}: {(benchmark.__doc__ or '').strip().splitlines()[0]}", flush=True)
        began_s = time.monotonic()
        print(table(list(benchmark.run())))
        print(f"({time.monotonic() - began_s:.0f} s)\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
