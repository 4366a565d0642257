"""Indexes a folder over and over, killed by SIGKILL one step later each time; prints what was found as JSON.

Run as a program with an empty folder as its argument. It is a process of its own because it forks, which a test
process with threads must not. A step is a flush, a rename or a removal; at a flush, half of the file is on the disk.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from library_folders import contents, write

from docmind_lab.core.errors import RecordError
from docmind_lab.docmind.documents import index_folder, open_library

OLD = {"a.md": "# A\n\nOf pumps.\n", "b.txt": "Of valves.", "c.html": "<p>Of pipes.</p>", "d.txt": "Of dams."}
NEW = {
    "a.md": "# A\n\nOf motors. See [e](e.txt).\n",
    "b.txt": "Of valves.",
    "c.html": "<p>Wires.</p>",
    "e.txt": "Of ebb.",
}


def die_at(step: int) -> None:
    """Make this process kill itself at its `step`-th step from now."""
    taken = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            nonlocal taken
            taken += 1
            if taken == step:
                if function is fsync and stat.S_ISREG(os.fstat(arguments[0]).st_mode):
                    os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **keywords)

        return call

    fsync = os.fsync
    os.fsync, os.replace, Path.unlink = counted(os.fsync), counted(os.replace), counted(Path.unlink)


def found(index: Path) -> str:
    """The fingerprint of the library in an index folder, "none" if there is no index."""
    try:
        library = open_library(index)
    except RecordError as error:
        return "none" if "holds no index" in str(error) else f"unreadable: {error}"
    return library.fingerprint if library.complete else "incomplete"


def killed_runs(folder: Path, old_index: Path | None, source: Path, fresh: dict[str, bytes]) -> list[dict[str, Any]]:
    """One row for each step: what a reader found afterwards, and whether the next run made it like a fresh index."""
    rows = []
    for step in range(1, 200):
        index = folder / "index"
        shutil.rmtree(index, ignore_errors=True)
        if old_index is not None:
            shutil.copytree(old_index, index)
        child = os.fork()
        if child == 0:
            die_at(step)
            index_folder(source, index)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return rows
        after_kill = found(index)
        index_folder(source, index)
        rows.append({"found": after_kill, "mended": contents(index) == fresh})
    raise AssertionError("a run of four documents takes fewer steps")


def main(folder: Path) -> None:
    source = folder / "papers"
    write(source, OLD)
    index_folder(source, folder / "old")
    write(source, NEW)
    (source / "d.txt").unlink()
    index_folder(source, folder / "fresh")
    fresh = contents(folder / "fresh")
    report = {
        "old": found(folder / "old"),
        "new": found(folder / "fresh"),
        "updates": killed_runs(folder, folder / "old", source, fresh),
        "first runs": killed_runs(folder, None, source, fresh),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
