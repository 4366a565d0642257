"""What if the deadline were another, or were enforced in another way? Answered from traces, without running anything.

result = what_if(Traces.read("traces.jsonl"), decision_timeout_s=[30, 60, 120])
result                  # a table, and what it says
result.frame            # one row per alternative and decision timeout
result.study(60)        # the runs at one decision timeout, as a study
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.core.text import count_of, join_names, number, one_line, percent
from docmind_lab.findings.choice import FEWEST_PAIRS, choose
from docmind_lab.findings.finding import Block, Finding, MakesFinding
from docmind_lab.findings.study import Study
from docmind_lab.findings.what_if.answers import arm_rows, run_rows
from docmind_lab.findings.what_if.outcomes import Replay
from docmind_lab.findings.what_if.shares_in_time import in_time_shares, predicted_shares
from docmind_lab.statistics.interval import Floats
from docmind_lab.statistics.shares import runs_needed_for_share
from docmind_lab.tables.conditions import with_arms
from docmind_lab.tables.frames import rows_of, to_frame, with_dtypes
from docmind_lab.tables.traces.rules import NamedRule, rules_of
from docmind_lab.tables.traces.trace_tables import CALL_KINDS, Traces

_DEADLINES_WHEN_LEFT_OUT: Final = 12
_OF_TABLE: Final = "runs that ended otherwise, late callers, and work after the deadline (mean per run)"


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf(MakesFinding):
    """What would have become of recorded runs under each alternative at each decision timeout, with its sentences.

    frame: one row per alternative and decision timeout. Columns: arm, alternative, alternative_options,
    decision_timeout_s; runs, sessions, known_runs (those a trace can say of); in_time (runs), share, low, high (of all
    runs, by session), observed_share (share of runs of which it was observed; the rest had been cut before, and is
    estimated from the runs that went on longer), known_until_s (past it too few runs were watched: the share is NaN,
    and lies between low and 1; inf where all is known); partial, timed_out, failed, interrupted, unfinished (runs);
    overran (callers back more than 150 ms late), caller_overrun_median_s and caller_overrun_worst_s (of those that
    overran; inf: not back while the run was observed); means per run calls_after, busy_after_s and tokens_after, NaN
    past known_until_s, lower bounds where lower_bounds is True.
    """

    traces: Traces
    frame: pd.DataFrame
    rules: tuple[NamedRule, ...]
    replay: Replay
    confidence: float

    def study(self, decision_timeout_s: float) -> Study:
        """Return the runs at one decision timeout as a study, for its figures, contrasts and sentences.

        Args:
            decision_timeout_s: The decision timeout, seconds.

        Raises:
            ConfigurationError: It is not positive and finite.
        """
        frames = [
            run_rows(
                self.traces,
                named,
                self.replay.under(named.rule, [decision_timeout_s]),
                float(decision_timeout_s),
                self.replay.behaviour.name,
            )
            for named in self.rules
        ]
        runs = with_dtypes("runs", pd.concat(frames, ignore_index=True))
        # Nothing is known of the system but its name, so no setting of the lab's can give it the choice.
        plain = {"asked": "runs", "reads_settings": False}
        systems = {str(name): {"kind": str(name), "title": str(name), **plain} for name in runs["workload"].unique()}
        manifest = {"schema_version": SCHEMA_VERSION, "systems": systems}
        return Study(runs, to_frame("calls", []), to_frame("events", []), manifest)

    def smallest(self, target: float = 0.95) -> float:
        """Return the smallest decision timeout whose share in time surely reaches the target; NaN if none does.

        The decision timeouts are looked at from the largest down, and the first that is not sure ends it.

        Args:
            target: Share of runs answered in time, above 0 and below 1.

        Raises:
            ConfigurationError: The target is not between 0 and 1.
        """
        if not 0 < target < 1:
            raise ConfigurationError(f"target must lie between 0 and 1, not {target:g}")
        curve = self.curve.sort_values("decision_timeout_s", ascending=False)
        best = math.nan
        for timeout_s, low in zip(curve["decision_timeout_s"], curve["low"], strict=True):
            if low < target:
                break
            best = float(timeout_s)
        return best

    def predict(self, sessions: int) -> pd.DataFrame:
        """Return the share in time to be expected in other sessions of the same kind, by decision timeout.

        Args:
            sessions: How many sessions will be seen.

        Returns:
            One row per decision timeout: decision_timeout_s, sessions, share, low, high (bounds for the share that will
            be seen in them), observed_share.

        Raises:
            ConfigurationError: There are no sessions to predict, or fewer than two were observed.
        """
        timeouts = self.curve["decision_timeout_s"].to_numpy()
        return predicted_shares(self.traces, timeouts, sessions, self.confidence)

    @functools.cached_property
    def curve(self) -> pd.DataFrame:
        """One row per decision timeout: who enforces it does not change which runs end in time."""
        return self.frame.drop_duplicates("decision_timeout_s")

    def reaching(self, timeout_s: float) -> list[int]:
        """Return the runs, by place, that are seen at work past a timeout and that every rule can say something of."""
        runs = self.traces.runs
        at_work = (~(runs["ended_at_s"] <= timeout_s) & (runs["observed_until_s"] > timeout_s)).to_numpy(copy=True)
        for named in self.rules:
            at_work &= self.replay.under(named.rule, [timeout_s]).known[:, 0]
        return [int(place) for place in np.flatnonzero(at_work)]

    def sentences(self, target: float = 0.95) -> tuple[str, ...]:
        """Return what the traces say: how long the timeout should be, how to enforce it, and what they cannot say."""
        return tuple(
            filter(
                None,
                (*self._timeout_words(target), *self._choice_words(target), *self._limits()),
            )
        )

    def _timeout_words(self, target: float) -> list[str]:
        best = self.smallest(target)
        curve = {float(row["decision_timeout_s"]): row for row in rows_of(self.curve)}
        beyond = self._beyond_words(list(curve.values()))
        if not math.isnan(best):
            row = curve[best]
            sure = f"{_bounds(row)}, {percent(self.confidence)}, by session"
            text = f"Give these runs {best:g} s: {_share(row, 'would have been answered in time')}"
            return [f"{text}, surely {percent(target)} or more ({sure}).", *beyond]
        known = [row for row in curve.values() if not math.isnan(row["share"])]
        if not known:
            return beyond
        row = known[-1]
        text = (
            f"No decision timeout up to {row['decision_timeout_s']:g} s is sure to have {percent(target)} answered: "
            f"with the longest it is {percent(row['share'], 1)} ({_bounds(row)})."
        )
        needed = runs_needed_for_share(target, self.confidence)
        if row["share"] >= target:
            enough = (
                f" It takes {needed} independent runs to be sure; these are of {count_of(row['sessions'], 'session')}."
            )
            return [text if row["sessions"] >= needed else f"{text}{enough}", *beyond]
        failed = int(self.traces.runs["outcome"].isin(("failed", "interrupted")).sum())
        more = f" {count_of(failed, 'run')} ended without an answer, which no timeout changes." if failed else ""
        return [f"{text}{more}", *beyond]

    def _beyond_words(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Say until when anything is known, and what to record to know more; nothing where all is known."""
        unknown = [row for row in rows if math.isnan(row["share"])]
        if not unknown:
            return []
        until_s, row = float(unknown[0]["known_until_s"]), unknown[-1]
        watched = self.traces.runs["ended_at_s"].fillna(self.traces.runs["observed_until_s"])
        longer = int((watched > until_s).sum())
        text = (
            f"Beyond {until_s:.4g} s the share is not known: {longer} of {len(self.traces)} runs were watched longer. "
            f"With {row['decision_timeout_s']:g} s it is anything from {percent(row['low'], 1)} to 100%. Record runs "
            "without a deadline (the control, unguarded), or give a tenth of the runs a longer limit, to know more."
        )
        return [text]

    def _choice_words(self, target: float) -> list[str]:
        """Say how to enforce the deadline, by the runs that reach it: the others are the same under any alternative."""
        if self.frame["busy_after_s"].isna().all():
            no_call = not self.traces.spans["kind"].isin(CALL_KINDS).any()
            why = "No call was recorded with its start" if no_call else "No run was watched so long"
            return [f"{why}, so what an alternative would leave behind is not known."]
        best = self.smallest(target)
        timeouts = [each for each in self.curve["decision_timeout_s"] if math.isnan(best) or each <= best]
        falls = {float(each): self.reaching(each) for each in timeouts}
        enough = [each for each, runs in falls.items() if len(runs) >= FEWEST_PAIRS]
        if not enough:
            most = max(map(len, falls.values()))
            text = f"Too few runs to choose how to enforce it: {most} of them reach one of these timeouts"
            return [f"{text}, and {FEWEST_PAIRS} are the fewest that are compared."]
        at_s = max(enough)
        runs = self.study(at_s).runs
        runs = runs[runs["seed"].isin(falls[at_s])]
        choice = choose(runs)
        if not choice.chosen:
            return []
        arms = {str(arm): group for arm, group in with_arms(runs).groupby("arm", observed=True)}
        names = join_names([one_line(arm) for arm in choice.chosen], "or")
        late = sorted({number(_busy_s(arms[arm]), 2) for arm in choice.chosen}, key=float)
        apart = "these runs do not tell them apart, and " if len(late) > 1 else ""
        seconds = " to ".join(dict.fromkeys((late[0], late[-1])))
        text = (
            f"Where the deadline falls ({len(falls[at_s])} of {len(self.traces)} runs at {at_s:g} s), choose {names}: "
            f"{apart}servers work {seconds} s for such a run afterwards."
        )
        others = [f"{one_line(arm)} {_left_behind(group)}" for arm, group in arms.items() if arm not in choice.chosen]
        bounds = self.frame.loc[self.frame["decision_timeout_s"] == at_s, "lower_bounds"].any()
        least = ["Not all of their work was watched to its end, so these are lower bounds."] if bounds else []
        return [" ".join([text, *([f"{'; '.join(others)}."] if others else []), *least])]

    def _limits(self) -> list[str]:
        lines = []
        least = self.frame["observed_share"].min()
        if least < 1:
            cut = int((self.traces.runs["outcome"] == "cut").sum())
            lines.append(
                f"{cut} of {len(self.traces)} runs were cut, or watched no longer, before their end. What they would "
                f"have done later is estimated from runs that went on longer; at least {percent(least)} is observed. "
                "What an alternative leaves behind is that of the runs that were watched so long."
            )
        unseen = (self.frame["runs"] * (1 - self.frame["observed_share"])).round()
        unknown = self.frame["runs"] - self.frame["known_runs"] - unseen
        if (unknown > 0).any():
            arms = sorted(set(self.frame.loc[unknown > 0, "arm"]))
            lines.append(
                f"Under {join_names([one_line(arm) for arm in arms])} calls are retried in another way, so up to "
                f"{count_of(int(unknown.max()), 'run')} with a failed call would have taken another path: measure them "
                "in virtual time. They are left out of those rows."
            )
        lines.append(
            "The runs are replayed: an agent that knew its deadline would have spent its time in another way, and "
            "nothing here says how."
        )
        return lines

    def table(self, decision_timeout_s: float | None = None) -> pd.DataFrame:
        """Return the table for people: the curve over decision timeouts, or the alternatives at one of them."""
        if decision_timeout_s is None:
            curve = self.curve
            return pd.DataFrame(
                {
                    "decision timeout (s)": [f"{value:g}" for value in curve["decision_timeout_s"]],
                    "in time": ["not known" if math.isnan(share) else percent(share, 1) for share in curve["share"]],
                    percent(self.confidence): [_bounds(row) for row in rows_of(curve)],
                    "observed": [percent(share) for share in curve["observed_share"]],
                }
            )
        rows = self.frame[self.frame["decision_timeout_s"] == decision_timeout_s]
        least = ["≥ " if each else "" for each in rows["lower_bounds"]]
        columns: dict[str, Any] = {
            "partial": rows["partial"],
            "nothing": rows["timed_out"] + rows["unfinished"],
            "late": rows["overran"],
            "worst s": [
                ("" if not late else number(each, 1) if math.isfinite(each) else "not seen")
                for each, late in zip(rows["caller_overrun_worst_s"], rows["overran"], strict=True)
            ],
            "calls": _means(rows["calls_after"], least, 2),
            "seconds": _means(rows["busy_after_s"], least, 1),
            "tokens": _means(rows["tokens_after"], least, 0),
        }
        measures = {"calls": "calls_after", "seconds": "busy_after_s", "tokens": "tokens_after"}
        unknown = [name for name, column in measures.items() if rows[column].isna().all()]
        known = {name: list(values) for name, values in columns.items() if name not in unknown}
        return pd.DataFrame(known, index=list(rows["arm"]))

    def finding(self, target: float = 0.95) -> Finding:
        """Return tables and sentences."""
        head, *notes = repr(self.traces).splitlines()
        tables: list[Block] = [self.table()]
        if not math.isnan(best := self.smallest(target)):
            tables += [f"At {best:g} s, {_OF_TABLE}:", self.table(best)]
        sentences = self.sentences(target)
        words = (f"What if the deadline were another? {head}", *notes, *tables, *sentences)
        return Finding(words, {"sentences": sentences}, {"rows": self.frame})

    def as_shown(self) -> Finding:
        """Return the same, the answer first."""
        words, (answer, *others) = self.finding().words, self.sentences()
        return Finding((answer, *words[: -len(others) - 1], *others))


def what_if(
    traces: Traces,
    decision_timeout_s: Sequence[float] | None = None,
    alternatives: Sequence[str] | str | None = None,
    server_behaviour: ServerBehaviour | str = "stops",
    *,
    confidence: float = 0.95,
) -> WhatIf:
    """Return what would have become of recorded runs at other decision timeouts, under each alternative.

    Args:
        traces: The runs; those that nothing cut say most.
        decision_timeout_s: Decision timeouts, seconds. None means a dozen between the shortest and the longest run.
        alternatives: Letters, levels or variants, such as "A,B:drain,D". None means all that a trace can say of.
        server_behaviour: What a server does with a call whose client has left: "stops", "goes-on", a profile that
            ships with the package, or a file that `docmind-lab probe server` wrote.
        confidence: Confidence of the intervals.

    Returns:
        The table, its sentences and its figures.

    Raises:
        ConfigurationError: A value cannot be used, or an alternative changes the path of a run.
    """
    named = rules_of(alternatives)
    behaviour = ServerBehaviour.named(server_behaviour) if isinstance(server_behaviour, str) else server_behaviour
    replay = Replay(traces, behaviour)
    timeouts = np.sort(np.unique(_timeouts(traces) if decision_timeout_s is None else np.asarray(decision_timeout_s)))
    shares = in_time_shares(traces, timeouts, confidence)
    frames = [
        pd.concat(
            [shares, arm_rows(replay.under(each.rule, timeouts), timeouts, traces, shares["known_until_s"])],
            axis=1,
        ).assign(arm=each.label, alternative=each.alternative, alternative_options=each.options)
        for each in named
    ]
    frame = pd.concat(frames, ignore_index=True)
    first = ["arm", "alternative", "alternative_options", "decision_timeout_s"]
    frame = frame[[*first, *(name for name in frame if name not in first)]]
    return WhatIf(traces, frame, named, replay, confidence)


def _left_behind(runs: pd.DataFrame) -> str:
    """Return what an alternative did to runs that reached the deadline, in words that follow its name."""
    worst_s = float(runs["caller_overrun_s"].fillna(math.inf).max())
    late_by = f"up to {number(worst_s, 1)} s late" if math.isfinite(worst_s) else "not back while the run was watched"
    late = f", callers {late_by}" if worst_s > HELD_WITHIN_S else ""
    return f"leaves {number(_busy_s(runs), 1)} s of work a run{late}"


def _busy_s(runs: pd.DataFrame) -> float:
    return float(runs["busy_after_deadline_s"].mean())


def _timeouts(traces: Traces) -> Floats:
    """Return a dozen round decision timeouts between the shortest and the longest run."""
    ends = traces.runs["ended_at_s"].fillna(traces.runs["observed_until_s"]).to_numpy()
    low, high = float(np.quantile(ends, 0.1)), float(ends.max())
    spread = np.geomspace(max(low, high / 1000, 1e-3), max(high, 1e-3), _DEADLINES_WHEN_LEFT_OUT)
    rounded = {float(f"{value:.2g}") for value in spread}
    # The last of them has every run that ended, however it was rounded.
    return np.array(sorted({*rounded, *([] if max(rounded) >= high else [float(math.ceil(high))])}))


def _share(row: Mapping[str, Any], words: str) -> str:
    """Return how large a share is in words, also where only its lower bound is known."""
    if math.isnan(row["share"]):
        return f"how many {words} is not known"
    return f"{percent(row['share'], 1)} {words}"


def _bounds(row: Mapping[str, Any]) -> str:
    return f"{percent(row['low'], 1)} to {percent(row['high'], 1)}"


def _means(values: pd.Series[float], least: Sequence[str], digits: int) -> list[str]:
    return [f"{mark if value else ''}{number(value, digits)}" for value, mark in zip(values, least, strict=True)]
