"""What a study of a million calls costs to read and to sum up: seconds and memory of a process of its own.

The rows are those of a small study that was measured, repeated under new run ids and written as a study's folder. The
process imports what it needs before its clock starts; Python and the imports count as its memory. Linux only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.figures import Figure
from docmind_lab.experiments.sweeps.sweep_run import sweep
from docmind_lab.findings.study import MANIFEST, Study
from docmind_lab.tables.records import TABLES

CALLS = 1_000_000
SECONDS_TARGET, MEMORY_TARGET_MB = 2.0, 1_000.0
_SMALL = {
    "documents": "handbook",
    "repeats": 2,
    "factors": {"alternative": "unguarded,A,B,C,D,E,F", "latency_profile": "typical"},
}
_READER = """
import json, sys, time
import pyarrow.parquet
from docmind_lab.findings.study import Study
begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
study = Study.load(sys.argv[1])
read_s = time.perf_counter() - begun_s
summary = study.summary()
took_s, cpu_s = time.perf_counter() - begun_s, time.process_time() - begun_cpu_s
# Not ru_maxrss, which begins with what the parent of the process had at its most.
with open("/proc/self/status") as status:
    (peak_kb,) = [int(line.split()[1]) for line in status if line.startswith("VmHWM:")]
found = {"calls": len(study.calls), "runs": int(summary["runs"].sum())}
print(json.dumps({**found, "read_s": read_s, "took_s": took_s, "cpu_s": cpu_s, "peak_kb": peak_kb}))
"""


def run(calls: int = CALLS) -> Iterator[Figure]:
    """Seconds to read and sum up a study of at least so many calls, and the most memory that it took."""
    small = sweep(_SMALL, workers=1, progress=lambda done, total: None)
    copies = -(-calls // len(small.calls))
    with tempfile.TemporaryDirectory() as folder:
        _write(small, copies, Path(folder))
        done = subprocess.run([sys.executable, "-c", _READER, folder], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert (found["calls"], found["runs"]) == (copies * len(small.calls), copies * len(small.runs)), "rows were lost"
    yield Figure("rows of calls", found["calls"], "rows")
    yield Figure("  read", found["read_s"], "s")
    yield Figure("  read and summed up", found["took_s"], "s", at_most=SECONDS_TARGET)
    yield Figure("    CPU", found["cpu_s"], "s")
    yield Figure("  most memory of the process", found["peak_kb"] / 1000, "MB", at_most=MEMORY_TARGET_MB)


def _write(small: Study, copies: int, folder: Path) -> None:
    """The study's tables so many times below each other, each time with run ids of their own."""
    for name in TABLES:
        frame: pd.DataFrame = getattr(small, name)
        repeated = frame.loc[np.tile(np.arange(len(frame)), copies)].reset_index(drop=True)
        numbers = pd.Series(np.repeat(np.arange(copies), len(frame))).astype("str")
        repeated["run_id"] = numbers + "-" + repeated["run_id"]
        repeated.to_parquet(folder / f"{name}.parquet", index=False)
    (folder / MANIFEST).write_text(json.dumps(small.manifest), encoding="utf-8")
