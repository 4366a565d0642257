"""A load study: its two tables and manifest, its summary, and the folder that it is saved in."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import pandas as pd

from docmind_lab.core.errors import RecordError, SimulationError
from docmind_lab.core.text import count_of
from docmind_lab.core.whole_files import write_whole
from docmind_lab.experiments.batch.cells import CellOutcome
from docmind_lab.experiments.batch.runner import AnyCell, AnyOutcome, Progress, compute_cells
from docmind_lab.experiments.batch.workers import Workers
from docmind_lab.experiments.load.measures import (
    FEWEST_REPLICATES,
    CountedFrom,
    goodput_differences,
    load_summary,
    replicate_measures,
)
from docmind_lab.experiments.load.tables import concat_queries, concat_servings
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.findings.study import MANIFEST, files_of, prepare_folder, require_known_schema
from docmind_lab.tables.conditions import budgets_in_words
from docmind_lab.tables.frames import read_parquet
from docmind_lab.tables.manifest import MachineUse, check_table, checked_manifest

_DAMAGED: Final = "; take the folder from a copy, or run the load study again into another folder"
# Less is lost in what the machine does anyway.
_LATE_MATTERS_FROM = 0.01


class SavedStudy(MakesFinding):
    """A load study that is saved in a folder: its tables, and the manifest last."""

    TABLE_NAMES: ClassVar[tuple[str, ...]]
    manifest: Mapping[str, Any]

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables and the manifest into a folder, each by a temporary file and a rename, the manifest last.

        Raises: ConfigurationError when the folder cannot be written or holds a study already.
        """
        folder = prepare_folder(directory)
        for name, write in files_of(self, self.TABLE_NAMES):
            write_whole(folder / name, write)
        return folder

    @classmethod
    def read_folder(cls, folder: Path) -> tuple[dict[str, Any], list[pd.DataFrame]]:
        """Return the manifest and the tables of a load study.

        Raises: RecordError if there is none, a newer version wrote it, or a file was changed after it was written.
        """
        try:
            text = (folder / MANIFEST).read_text(encoding="utf-8")
            manifest = json.loads(text)
        except (OSError, ValueError) as error:
            raise RecordError(f"{folder} holds no load study that can be read: {MANIFEST} ({error})") from error
        if not isinstance(manifest, dict):
            raise RecordError(f"{folder} holds no load study: its {MANIFEST} is not a JSON object")
        require_known_schema(folder, manifest)
        manifest, checksums = checked_manifest(folder / MANIFEST, text, _DAMAGED)
        files = [folder / f"{name}.parquet" for name in cls.TABLE_NAMES]
        for file in files:
            check_table(file, checksums, _DAMAGED)
        return manifest, [read_parquet(file, _DAMAGED) for file in files]


AnyStudy = TypeVar("AnyStudy", bound=SavedStudy)


def crowds_done(
    cells: Sequence[AnyCell],
    compute: Callable[[AnyCell, int], AnyOutcome],
    kind: type[AnyOutcome],
    crew: Workers,
    stop: threading.Event | None,
) -> Generator[AnyOutcome]:
    """Yield the result of each crowd as it is done. Raises: the error of one that failed twice."""
    if stop is not None and stop.is_set():
        return
    done = 0
    # How long a crowd takes depends on the machine: none is given up for being slow.
    with contextlib.closing(compute_cells(cells, compute, kind, crew, stop, patience_s=math.inf)) as results:
        for result in results:
            if result.error is not None:
                raise result.error
            done += 1
            yield result
    if done < len(cells):
        # Stopped. What is under way takes its time, and would delay the next user of the same processes.
        crew.replace()


def study_of_crowds(
    cells: Sequence[AnyCell],
    compute: Callable[[AnyCell, int], AnyOutcome],
    kind: type[AnyOutcome],
    crew: Workers,
    make: Callable[[Sequence[AnyOutcome], dict[str, Any]], AnyStudy],
    *,
    queries: int,
    out: str | os.PathLike[str] | None,
    progress: Progress | None,
    stop: threading.Event | None,
) -> AnyStudy:
    """Compute the crowds, as `compute_cells` does, and return the study of those that were done.

    make: the results, and what the manifest says of the machine → their study. queries: of each crowd.
    Raises: SimulationError if none was done before the stop; KeyboardInterrupt once what was done is saved; the error
    of a crowd that failed twice.
    """
    folder = None if out is None else prepare_folder(out)
    done: list[AnyOutcome] = []
    interrupted: KeyboardInterrupt | None = None
    use = MachineUse()
    try:
        with crew as at_work, contextlib.closing(crowds_done(cells, compute, kind, at_work, stop)) as results:
            for result in results:
                done.append(result)
                use.add_workers(result.cpu_s)
                if progress is not None:
                    progress(len(done) * queries, len(cells) * queries)
    except KeyboardInterrupt as error:
        interrupted = error
    if not done:
        raise interrupted or SimulationError("the load study was stopped before its first crowd was done")
    spent = {"cpu_s": sum(each.cpu_s for each in done), "machine_use": use.to_dict(len(done) * queries)}
    study = make(done, spent)
    if folder is not None:
        study.save(folder)
    if interrupted is not None:
        raise interrupted
    return study


@dataclass(frozen=True)
class LoadCellResult(CellOutcome):
    """The tables of one crowd."""

    queries: pd.DataFrame = field(default_factory=pd.DataFrame)
    servings: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True, eq=False, repr=False)
class LoadStudy(SavedStudy):
    """The result of `run_load`: a row for each query, and one for each request at the model server.

    The data dictionary describes the columns of both. manifest: settings, versions, machine, CPU seconds.
    """

    queries: pd.DataFrame
    servings: pd.DataFrame
    manifest: Mapping[str, Any] = field(default_factory=dict)

    TABLE_NAMES = ("queries", "servings")

    @classmethod
    def of(cls, cells: Iterable[LoadCellResult], manifest: Mapping[str, Any]) -> LoadStudy:
        """Build a study from the results of crowds, ordered by the ids of their queries."""
        done = list(cells)
        return cls(
            concat_queries(cell.queries for cell in done), concat_servings(cell.servings for cell in done), manifest
        )

    def replicates(self, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return one row for each crowd: see `measures.replicate_measures`, also for `counted_from`."""
        return replicate_measures(self.queries, self.servings, counted_from)

    def summary(self, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return one row for each load and arm, with intervals over replicates: see `measures.load_summary`."""
        return load_summary(self.replicates(counted_from))

    def differences(self, reference: str, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return how much more or less goodput each arm has than the reference: see `goodput_differences`."""
        return goodput_differences(self.replicates(counted_from), reference)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> LoadStudy:
        """Read a study that `save` wrote. Raises: RecordError if there is none, or a newer version wrote it."""
        manifest, (queries, servings) = cls.read_folder(Path(directory))
        return cls(concat_queries([queries]), concat_servings([servings]), manifest)

    @property
    def title(self) -> str:
        """One line that says what was run."""
        first = self.queries.iloc[0]
        slots = "no limit of slots" if pd.isna(first["slots"]) else count_of(int(first["slots"]), "slot")
        callers = "" if pd.isna(first["callers"]) else f" · {count_of(int(first['callers']), 'caller')}"
        budget = "".join(f" · {words}" for words in budgets_in_words(self.queries))
        clock = " · on the wall clock" if str(first["clock"]) == "wall" else ""
        queries = "1 query" if len(self.queries) == 1 else f"{len(self.queries)} queries"
        return (
            f"{first['workload']} under load · {first['decision_timeout_s']:g} s decision timeout · "
            f"{first['latency_profile']} latencies, {slots}{callers}{budget}{clock} · {queries}"
        )

    @property
    def lateness(self) -> str:
        """A sentence on how late queries were begun; empty if 99 % waited under 1 % of their timeout."""
        late_s, timeout_s = self.queries["late_s"], float(self.queries["decision_timeout_s"].iloc[0])
        usual_s = float(late_s.quantile(0.99))
        if usual_s < _LATE_MATTERS_FROM * timeout_s:
            return ""
        return (
            f"The machine was busy: 1 % of the queries began {usual_s:.2f} s or more after their scheduled arrival "
            f"(at most {late_s.max():.2f} s). Their response times include it."
        )

    def finding(self) -> Finding:
        """Return the measures of each load and arm."""
        return Finding((self.title, self._display_table(), *filter(None, [self.lateness])))

    def _display_table(self) -> pd.DataFrame:
        table = self.summary()
        bounds = zip(table["goodput_low_per_s"], table["goodput_high_per_s"], strict=True)
        replicates = table["replicates"].tolist()
        intervals = [
            _too_few(count) if math.isnan(low) else f"{low:.3f} – {high:.3f}"
            for (low, high), count in zip(bounds, replicates, strict=True)
        ]
        collapsed = [f"{count} of {of}" for count, of in zip(table["collapsed"], replicates, strict=True)]
        return pd.DataFrame(
            {
                "offered /s": table["offered_per_s"].map("{:.3g}".format),
                "arm": table["arm"].astype("str"),
                "goodput /s": table["goodput_per_s"].map("{:.3f}".format),
                "95 % interval": intervals,
                "collapsed": collapsed,
                "in time": table["share_in_time"].map("{:.0%}".format),
                "slots busy": table["busy_share"].map("{:.0%}".format),
                "slots on abandoned": table["abandoned_share"].map("{:.1%}".format),
                "live queue wait": table["live_queue_wait_s"].map("{:.2f} s".format),
            }
        )


def _too_few(replicates: int) -> str:
    return "one replicate" if replicates == 1 else f"too few: {replicates} of {FEWEST_REPLICATES}"
