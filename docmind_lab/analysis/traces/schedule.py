"""What each span of a run waited for, how long passed in between, and the schedule that other durations would give.

schedule = Schedule(traces)
schedule.spans                              # one row per span: after, waited_until_s, think_s
schedule.rescheduled(durations_s)           # starts and ends of all spans, ends of all runs
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from docmind_lab.analysis.statistics.interval import Floats
from docmind_lab.analysis.traces.model import Traces
from docmind_lab.core.errors import ConfigurationError, RecordError

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rescheduled:
    """When everything would have happened, in seconds from the start of each run.

    Args:
        started_at_s: Start of each span, in the order of `Traces.spans`.
        ended_at_s: End of each span; inf where it was not seen to end.
        run_ended_at_s: End of each run, in the order of `Traces.runs`; NaN where it was not seen to end.
    """

    started_at_s: Floats
    ended_at_s: Floats
    run_ended_at_s: Floats


class Schedule:
    """Runs as graphs of spans that wait for each other.

    A span waited for the spans that its `after` names. Where that names none, it waited for those of the same parent
    that had ended when it began, without those that another of them had waited for; spans that overlap are parallel.
    Where there are none, it waited for the start of its parent, or of its run. Its think time passed from then until it
    began: tools, people, and code between calls.

    A span that holds others, and a run, ends as long after the last of those that ended within it as was recorded.

    Args:
        traces: The runs.

    Raises:
        RecordError: A span waited for one that is not in its run, or spans waited for each other.
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        frame, runs = traces.spans, traces.runs
        self._count = len(frame)
        run = pd.Series(np.arange(len(runs)), index=runs["trace_id"])[frame["trace_id"]].to_numpy()
        self._started = frame["started_at_s"].to_numpy()
        self._ended = frame["ended_at_s"].fillna(np.inf).to_numpy()
        row = {key: place for place, key in enumerate(zip(run, frame["span_id"], strict=True))}
        parent = np.array([row.get(key, -1) for key in zip(run, frame["parent_id"], strict=True)], dtype=np.int64)
        self._after = _inferred(run, parent, self._started, self._ended)
        for place, text in enumerate(frame["after"]):
            if text != "[]":
                self._after[place] = _named(text, run[place], row, frame.iloc[place])

        # Three events for each: span i begins (i), span i ends (count + i), run r ends (2 count + r).
        run_ended = runs["ended_at_s"].to_numpy()
        recorded = np.concatenate([self._started, self._ended, run_ended])
        self._waits_for = self._waits(run, parent, run_ended)
        self._order, self._is_holder = _in_order(self._waits_for, frame), np.isin(np.arange(self._count), parent)
        known_s = np.nan_to_num(recorded, nan=np.inf).tolist()
        with np.errstate(invalid="ignore"):
            self._offset_s = recorded - [_last_of(known_s, events) for events in self._waits_for]

    def _waits(self, run: Places, parent: Places, run_ended: Floats) -> list[list[int]]:
        """Return for each event those that come before it."""
        n, begin_after = self._count, [[self._count + before for before in places] for places in self._after]
        end_after, run_end_after = [[place] for place in range(n)], [list[int]() for _ in run_ended]
        for place, above in enumerate(parent.tolist()):
            if above >= 0 and not begin_after[place]:
                begin_after[place] = [above]
            if above >= 0 and self._ended[place] <= self._ended[above] < np.inf:
                end_after[above].append(n + place)
            elif above < 0 and self._ended[place] <= run_ended[run[place]]:
                run_end_after[run[place]].append(n + place)
        return [*begin_after, *end_after, *run_end_after]

    @property
    def think_s(self) -> Floats:
        """Seconds between what each span waited for and its start; negative where clocks disagree."""
        return self._offset_s[: self._count]

    @property
    def spans(self) -> pd.DataFrame:
        """One row per span: trace_id, span_id, after (ids), waited_until_s and think_s (seconds)."""
        ids = self.traces.spans["span_id"].to_numpy()
        return pd.DataFrame(
            {
                "trace_id": self.traces.spans["trace_id"],
                "span_id": ids,
                "after": [[str(ids[place]) for place in places] for places in self._after],
                "waited_until_s": self._started - self.think_s,
                "think_s": self.think_s,
            }
        )

    def rescheduled(self, durations_s: ArrayLike) -> Rescheduled:
        """Return the schedule that other durations would give, with the same waits and think times.

        Args:
            durations_s: Duration of each span, seconds, in the order of `Traces.spans`; NaN means as recorded. Those
                of spans that hold others are not used: they end when those do.

        Raises:
            ConfigurationError: There is not one for each span, or one is negative.
        """
        durations = np.asarray(durations_s, dtype=np.float64)
        if durations.shape != (self._count,):
            raise ConfigurationError(
                f"durations_s has shape {durations.shape}; give one for each of {self._count} spans"
            )
        if (durations < 0).any():
            raise ConfigurationError(f"durations_s has {np.nanmin(durations):g}; a duration must be 0 or more")
        n, offset = self._count, self._offset_s.copy()
        given = ~np.isnan(durations) & ~self._is_holder
        offset[n : 2 * n][given] = durations[given]
        instants_s = offset.tolist()
        for event in self._order:
            instants_s[event] += _last_of(instants_s, self._waits_for[event])
        at_s = np.array(instants_s)
        return Rescheduled(at_s[:n], at_s[n : 2 * n], at_s[2 * n :])


def _inferred(run: Places, parent: Places, started: Floats, ended: Floats) -> list[list[int]]:
    """Return for each span those of the same parent that it waited for, as far as instants tell."""
    after: list[list[int]] = [[] for _ in started]
    # Those that had ended, and that none of the others that had ended had waited for, or that were under way.
    before: dict[tuple[int, int], list[int]] = {}
    for place in np.lexsort((ended, started)).tolist():
        siblings = before.setdefault((int(run[place]), int(parent[place])), [])
        done = [each for each in siblings if ended[each] <= started[place]]
        if done:
            last = done[-1]
            after[place] = [each for each in done if each == last or ended[each] > started[last]]
            siblings[:] = [*after[place], *(each for each in siblings if ended[each] > started[place])]
            siblings.sort(key=lambda each: (started[each], ended[each]))
        siblings.append(place)
    return after


def _named(text: str, run: int, row: dict[tuple[int, str], int], span: pd.Series[str]) -> list[int]:
    where = f"run {span['trace_id']}: span {span['span_id']}"
    try:
        names = [str(each) for each in json.loads(text)]
        return [row[run, name] for name in names]
    except KeyError as error:
        raise RecordError(
            f"{where} waited for {error.args[0][1]!r}, which is not in its run; correct its after"
        ) from error
    except (TypeError, ValueError) as error:
        raise RecordError(f"{where}: after must be a JSON list of spans: got {text!r:.60}") from error


def _in_order(waits_for: list[list[int]], spans: pd.DataFrame) -> list[int]:
    """Return the events, each after those it waits for. Raises: RecordError when one waits for itself."""
    try:
        return list(TopologicalSorter(dict(enumerate(waits_for))).static_order())
    except CycleError as error:
        span = spans.iloc[min(error.args[1]) % len(spans)]
        raise RecordError(
            f"run {span['trace_id']}: span {span['span_id']} waited for itself; correct parent and after"
        ) from error


def _last_of(at_s: list[float], events: list[int]) -> float:
    """Return the last instant of events; 0 for none."""
    return max([at_s[each] for each in events], default=0.0)
