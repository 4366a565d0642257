"""The result of a load study: its tables and manifest, its summary, and the folder that it is saved in."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pandas as pd

from docmind_lab.core.text import count_of
from docmind_lab.core.whole_files import write_whole
from docmind_lab.experiments.load.crowd_tables import concat_queries, concat_servings
from docmind_lab.experiments.load.measures import (
    FEWEST_REPLICATES,
    CountedFrom,
    goodput_differences,
    load_summary,
    replicate_measures,
)
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.findings.study import files_of, prepare_folder, read_manifest, table_in

# Name of each table → what restores its dtypes.
_TABLES: Final = MappingProxyType({"queries": concat_queries, "servings": concat_servings})


@dataclass(frozen=True, eq=False, repr=False)
class LoadStudy(MakesFinding):
    """The result of `run_load`: a row for each query, and one for each request at the model server.

    Args:
        queries: The columns of `runs`, which the data dictionary describes, and `crowd_tables.QUERY_COLUMNS`.
        servings: The columns of `crowd_tables.SERVING_COLUMNS`.
        manifest: Settings, versions, machine, CPU seconds.
    """

    queries: pd.DataFrame
    servings: pd.DataFrame
    manifest: Mapping[str, Any] = field(default_factory=dict)

    def replicates(self, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return one row for each crowd: see `measures.replicate_measures`, also for `counted_from`."""
        return replicate_measures(self.queries, self.servings, counted_from)

    @property
    def title(self) -> str:
        """One line that says what was run."""
        first = self.queries.iloc[0]
        slots = "no limit of slots" if pd.isna(first["slots"]) else count_of(int(first["slots"]), "slot")
        callers = "" if pd.isna(first["callers"]) else f" · {count_of(int(first['callers']), 'caller')}"
        clock = " · on the wall clock" if str(first["clock"]) == "wall" else ""
        queries = "1 query" if len(self.queries) == 1 else f"{len(self.queries)} queries"
        return (
            f"{first['workload']} under load · {first['decision_timeout_s']:g} s decision timeout · "
            f"{first['latency_profile']} latencies, {slots}{callers}{clock} · {queries}"
        )

    def summary(self, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return one row for each load and arm, with intervals over replicates: see `measures.load_summary`."""
        return load_summary(self.replicates(counted_from))

    def differences(self, reference: str, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return how much more or less goodput each arm has than the reference: see `goodput_differences`."""
        return goodput_differences(self.replicates(counted_from), reference)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables and the manifest into a folder, each by a temporary file and a rename, the manifest last.

        Raises: ConfigurationError when the folder cannot be written or holds a study already.
        """
        folder = prepare_folder(directory)
        for name, write in files_of(self, _TABLES):
            write_whole(folder / name, write)
        return folder

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> LoadStudy:
        """Read a study that `save` wrote.

        Raises: RecordError if there is none, a newer version wrote it, or a file was changed after it was written.
        """
        folder = Path(directory)
        manifest, checksums = read_manifest(folder)
        tables = {name: restored([table_in(folder, name, checksums)]) for name, restored in _TABLES.items()}
        return cls(**tables, manifest=manifest)

    def finding(self) -> Finding:
        """Return the measures of each load and arm."""
        return Finding((self.title, _shown(self.summary())))


def _shown(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary as it is shown, with response times where there are enough queries for their quantiles."""
    bounds = zip(summary["goodput_low_per_s"], summary["goodput_high_per_s"], strict=True)
    replicates = summary["replicates"].tolist()
    intervals = [
        _too_few(count) if math.isnan(low) else f"{low:.3f} – {high:.3f}"
        for (low, high), count in zip(bounds, replicates, strict=True)
    ]
    collapsed = [f"{count} of {of}" for count, of in zip(summary["collapsed"], replicates, strict=True)]
    shown = pd.DataFrame(
        {
            "offered /s": summary["offered_per_s"].map("{:.3g}".format),
            "arm": summary["arm"].astype("str"),
            "goodput /s": summary["goodput_per_s"].map("{:.3f}".format),
            "95 % interval": intervals,
            "collapsed": collapsed,
            "in time": summary["share_in_time"].map("{:.1%}".format),
            "slots busy": summary["busy_share"].map("{:.0%}".format),
            "slots on abandoned": summary["abandoned_share"].map("{:.1%}".format),
            "live queue wait": summary["live_queue_wait_s"].map("{:.2f} s".format),
        }
    )
    if summary["response_p99_s"].isna().any():
        return shown
    quantiles = {"response p50": "response_median_s", "p99": "response_p99_s"}
    return shown.assign(**{name: summary[column].map("{:.1f} s".format) for name, column in quantiles.items()})


def _too_few(replicates: int) -> str:
    return "one replicate" if replicates == 1 else f"too few: {replicates} of {FEWEST_REPLICATES}"
