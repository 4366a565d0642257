"""Compares two studies: their settings, and the results of their arms.

result = diff(Study.load("before"), Study.load("after"))
result.fields         # design, settings, versions, machine: what differs, field by field
result.effects        # each arm and condition that both have: after − before, with intervals
result.sentences      # what differs, in words
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from docmind_lab.core.text import count_of, join_names, level, one_line, p_text
from docmind_lab.findings.criteria import MEASURES, difference_in, is_known
from docmind_lab.findings.endings import errors_in_words
from docmind_lab.findings.finding import Block, Finding, MakesFinding
from docmind_lab.findings.study import Study
from docmind_lab.statistics.differences import column_values, tarone
from docmind_lab.tables.conditions import CONDITION, in_words, varying, with_arms
from docmind_lab.tables.frames import rows_of
from docmind_lab.tables.manifest import flatten

# A corrected p value is at best (resamples + 1)⁻¹ × the number of comparisons.
_RESAMPLES: Final = 9999
_LEVEL: Final = 0.05
# Half of the level is the primary measure's, half all others'.
_FAMILY_LEVEL: Final = _LEVEL / 2
_SIDES: Final = ("before", "after")
_LONGEST_VALUE: Final = 60
_SECTIONS: Final = ("design", "settings", "versions", "machine")


_COMPARED: Final = ("answered_in_time", "caller_overrun_s", "busy_after_deadline_s", "source_recall")
PRIMARY: Final = "answered_in_time"
"""The measure that alone gets half of the significance level: a deadline is there for answers in time."""

Verdict = Literal["regressed", "cannot tell", "no regression shown", "nothing to compare"]


@dataclass(frozen=True, eq=False, repr=False)
class StudyDiff(MakesFinding):
    """The differences between two studies.

    effects: one row per condition, arm and measure that both studies have: the columns that tell conditions apart, arm,
    measure, before, after (means, or shares), difference (after − before), low, high (95 %), method, runs_before,
    runs_after, paired (over the seeds that both met with the same question), p_value (two-sided), test, p_corrected
    (one-sided for a change for the worse, two-sided for one for the better; corrected for all rows, see `diff`),
    differs (p_corrected < 0.05), worse (it differs, and for the worse), runs_missing (how many more runs the test needs
    before it could show that every run got worse; 0 where it could), open_before, open_after (runs whose value is a
    lower bound: not back, or still at work, at the horizon).
    endings: how many runs of an arm failed or were interrupted in either study, in words, where any did.
    only_before, only_after: arms and conditions that one study alone has, in words. not_compared: those that both have,
    and why they could not be compared.
    fields: one row per field that differs: section (runs, design, settings, versions, machine), field, before, after
    (as text; "" where there is none); None where the sides are tables without a manifest. sides: what they are called.
    title: what is compared, in a line above the verdict; "" for two studies. notes: what else is to be known, below it.
    """

    effects: pd.DataFrame
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    not_compared: tuple[str, ...]
    apart: tuple[str, ...]
    endings: tuple[str, ...] = ()
    fields: pd.DataFrame | None = None
    sides: tuple[str, str] = ("A", "B")
    title: str = ""
    notes: tuple[str, ...] = ()

    @property
    def regressed(self) -> bool:
        """Whether any measure got worse, corrected for the number of comparisons."""
        return bool(self.effects["worse"].any())

    @property
    def verdict(self) -> Verdict:
        """Whether the study regressed; "cannot tell" if the primary measure has too few runs to show it."""
        if self.effects.empty:
            return "nothing to compare"
        if self.regressed:
            return "regressed"
        # The same seeds with the same results, however few, are no sign of a change.
        unchanged = self.effects["paired"].all() and not self.effects["difference"].any()
        return "cannot tell" if self._primary["runs_missing"].any() and not unchanged else "no regression shown"

    @property
    def _primary(self) -> pd.DataFrame:
        return self.effects[self.effects["measure"] == PRIMARY]

    @property
    def verdict_text(self) -> str:
        """The verdict as a sentence."""
        if self.verdict == "cannot tell":
            more = count_of(int(self._primary["runs_missing"].max()), "more run")
            return f"Cannot tell whether anything got worse: {more} of each arm would be needed to show it."
        if self.verdict == "no regression shown":
            bound = ""
            for row in self._primary.nsmallest(1, "low").to_dict("records"):
                bound = (
                    f" By its 95 % interval, answered in time fell by at most {max(0.0, -row['low']):.2f} "
                    f"({one_line(str(row['arm']))})."
                )
            return f"No regression shown.{bound}"
        return {"regressed": "Regressed.", "nothing to compare": "There is nothing to compare."}[self.verdict]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The differences in words: changes for the worse first, then the others, then how many showed none."""
        rows = self.effects.sort_values("worse", ascending=False, kind="stable").to_dict("records")
        lines = [_sentence(row, self.apart) for row in rows if row["differs"]]
        if not rows:
            none = "No arm and condition is on both sides: there is no effect to compare."
            return (none if not self.not_compared else "What is on both sides could not be compared.",)
        rest = len(rows) - len(lines)
        if self.effects["difference"].eq(0).all():
            return (f"No difference in any of {count_of(len(rows), 'comparison')}.", *self.endings)
        if rest:
            lines.append(
                f"In {count_of(rest, 'comparison')} of {len(rows)} no difference was shown (corrected for all, at "
                f"{_LEVEL:.0%}); the intervals say how large one may be."
            )
        return (*lines, *self.endings)

    def finding(self) -> Finding:
        """Return the verdict, what the arms did, and what the studies are made of."""
        alone = {f"In {self.sides[0]} only": self.only_before, f"In {self.sides[1]} only": self.only_after}
        alone["Not compared"] = self.not_compared
        words: list[Block] = [*filter(None, [self.title]), self.verdict_text, self.sentences]
        words += [f"{what}: {'; '.join(names)}" for what, names in alone.items() if names]
        moved = self.effects[(self.effects["difference"] != 0) & ~self.effects["differs"].astype("bool")]
        if len(moved):
            words += [
                "What moved, and was not shown to differ:",
                tuple(_change(row, self.apart) for row in rows_of(moved)),
            ]
        fields = () if self.fields is None else tuple(map(_field, rows_of(self.fields)))
        if fields:
            words += ["What the studies are made of, A and B:", fields]
        elif self.fields is not None:
            words.append("Design, settings, versions and machine are the same.")
        names = ("only_before", "only_after", "not_compared", "sentences", "regressed", "verdict")
        numbers = {name: getattr(self, name) for name in names}
        evidence = {"effects": self.effects} | ({} if self.fields is None else {"fields": self.fields})
        return Finding((*words, *self.notes), numbers, evidence)


def diff(before: Study, after: Study) -> StudyDiff:
    """Compare two studies.

    Arms are matched by name, conditions by the factors that vary within a study. What has one value in each study, and
    another in the other (a profile, a version, a single decision timeout), is what the studies differ in: it is among
    the fields, and the arms are compared across it. Over the seeds that both met with the same question runs are
    paired; with other seeds they are independent.

    Half of the 5 % is the primary measure's, answered in time; half is the other measures'. Within each half, tests
    that no data could have made significant do not count (`differences.tarone`). Tests for the worse are one-sided
    where pairs are compared, which doubles their power. So ten pairs of seven arms can show a regression.
    """
    several = {*varying(before.runs), *varying(after.runs)} - {"horizon_s"}
    apart = [column for column in CONDITION if column in several]
    return dataclasses.replace(diff_of_runs(before.runs, after.runs, apart), fields=_fields(before, after))


def diff_of_runs(
    before: pd.DataFrame, after: pd.DataFrame, apart: Sequence[str], measures: Sequence[str] = _COMPARED
) -> StudyDiff:
    """Compare two tables of runs, as `diff` does.

    Args:
        before: Rows of `runs`.
        after: The same.
        apart: Columns that tell their conditions apart.
        measures: Keys of `criteria.MEASURES`.
    """
    sides = [_arms(runs, apart) for runs in (before, after)]
    both = [key for key in sides[0] if key in sides[1]]
    rows: list[dict[str, Any]] = []
    not_compared: list[str] = []
    endings: list[str] = []
    for key in both:
        endings += _endings(_label(key, apart), sides[0][key], sides[1][key])
        for measure in measures:
            row = _effect(sides[0][key], sides[1][key], measure)
            if isinstance(row, str):
                not_compared.append(f"{_label(key, apart)}: {MEASURES[measure].words}: {row}")
            else:
                rows.append(dict(zip([*apart, "arm"], key, strict=True)) | {"measure": measure} | row)
    return StudyDiff(
        effects=_with_verdicts(pd.DataFrame(rows, columns=[*apart, "arm", "measure", *_EFFECT])),
        only_before=tuple(_label(key, apart) for key in sides[0] if key not in sides[1]),
        only_after=tuple(_label(key, apart) for key in sides[1] if key not in sides[0]),
        not_compared=tuple(not_compared),
        apart=tuple(apart),
        endings=tuple(endings),
    )


def _with_verdicts(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the effects with their corrected p values and the columns that follow from them."""
    better = effects["measure"].map(lambda name: MEASURES[name].better).astype("float64")
    is_worse = effects["difference"] * better < 0
    paired = effects["paired"].astype("bool")
    # The null distribution of a paired test is symmetric, so that one side of it is half of both.
    p_value = effects["p_value"].where(~(is_worse & paired), effects["p_value"] / 2).astype("float64")
    corrected = pd.Series(1.0, index=effects.index)
    for family in (effects["measure"] == PRIMARY, effects["measure"] != PRIMARY):
        if family.any():
            adjusted = tarone(p_value[family], effects.loc[family, "least_p"], _FAMILY_LEVEL)
            corrected[family] = np.minimum(1.0, adjusted * (_LEVEL / _FAMILY_LEVEL))
    differs = corrected < _LEVEL
    return effects.drop(columns="least_p").assign(
        p_corrected=corrected, differs=differs, worse=differs & is_worse, runs_missing=_missing_runs(effects)
    )


def _missing_runs(effects: pd.DataFrame) -> pd.Series[int]:
    """Return how many more runs of each arm a test needs before it could show that every run got worse."""
    tests = effects["measure"].map(effects["measure"].value_counts()).to_numpy(dtype="float64")
    # Independent arms need about as many runs each as pairs: the permutations of 2n runs outnumber the 2ⁿ signs.
    have = effects[["runs_before", "runs_after"]].min(axis=1).to_numpy(dtype="float64")
    missing = np.maximum(0.0, np.ceil(np.log2(tests / _FAMILY_LEVEL)) - have)
    return pd.Series(missing.astype("int64"), index=effects.index)


_EFFECT: Final = (
    *("before", "after", "difference", "low", "high", "method"),
    *("runs_before", "runs_after", "paired", "p_value", "test", "least_p", "open_before", "open_after"),
)


def _endings(name: str, before: pd.DataFrame, after: pd.DataFrame) -> Iterator[str]:
    """Yield how many runs of an arm failed or were interrupted: fewer waits and less work are no gain then."""
    for outcome, verb in (("failed", "failed"), ("interrupted", "stopped to wait for a person")):
        ended = [runs[runs["outcome"].astype("str") == outcome] for runs in (before, after)]
        if not any(map(len, ended)):
            continue
        counts = [
            f"{len(of_side)} of {len(runs)}"
            + (f" ({errors_in_words(of_side)})" if outcome == "failed" and len(of_side) else "")
            for of_side, runs in zip(ended, (before, after), strict=True)
        ]
        yield (
            f"{name}: runs that {verb}: {counts[0]} → {counts[1]}. A run that ends so waits less and leaves less work, "
            "which is no gain."
        )


def _open(runs: pd.DataFrame, measure: str) -> int:
    """Return of how many runs the value of a measure is a lower bound."""
    if measure == "caller_overrun_s":
        return int((runs["outcome"].astype("str") == "unfinished").sum())
    return int(runs["work_censored"].sum()) if measure == "busy_after_deadline_s" else 0


def _arms(runs: pd.DataFrame, apart: Sequence[str]) -> dict[tuple[Any, ...], pd.DataFrame]:
    """Return the runs by condition and arm, in the order of every figure."""
    named = with_arms(runs)
    keys = [*apart, "arm"]
    groups = named.groupby(keys, observed=True, sort=True)
    return {(*key[:-1], str(key[-1])): group for key, group in groups}


def _effect(before: pd.DataFrame, after: pd.DataFrame, measure: str) -> dict[str, Any] | str:
    """Return one row of the effects, or the reason why there is none."""
    if not (is_known(before, measure) and is_known(after, measure)):
        return "not known for every run"
    pairs = _pairs(before, after)
    first, second = (before, after) if pairs is None else (before.loc[pairs[0]], after.loc[pairs[1]])
    old, new = column_values(first, measure), column_values(second, measure)
    if min(len(old), len(new)) < 2:
        return "there are fewer than two runs"
    result = difference_in(measure, second, first, paired=pairs is not None, resamples=_RESAMPLES)
    return {
        "before": float(old.mean()),
        "after": float(new.mean()),
        **result.row(),
        "runs_before": len(old),
        "runs_after": len(new),
        "paired": pairs is not None,
        "least_p": _least_p(old, new, paired=pairs is not None),
        "open_before": _open(first, measure),
        "open_after": _open(second, measure),
    }


def _least_p(old: Any, new: Any, *, paired: bool) -> float:
    """Return the smallest p value that the test can have with these values: one-sided if paired, as it is used."""
    if paired:
        return float(0.5 ** int((old != new).sum()))
    # Every exchange of runs between the arms, of which the test draws so many at most.
    return 1.0 / min(math.comb(len(old) + len(new), len(old)), _RESAMPLES + 1)


def _pairs(before: pd.DataFrame, after: pd.DataFrame) -> tuple[list[Any], list[Any]] | None:
    """Return the rows of both for the questions and seeds of both; None unless one side's are all shared.

    A study with more repeats of the same seed holds the shorter one's runs; others share seeds by chance at the most.
    """
    sides = []
    for runs in (before, after):
        keys = pd.MultiIndex.from_arrays([runs["seed"], runs["question_id"].astype("str")])
        if keys.has_duplicates:
            return None
        sides.append(pd.Series(runs.index, index=keys).sort_index())
    both = sides[0].index.intersection(sides[1].index)
    if len(both) < 2 or len(both) < min(len(sides[0]), len(sides[1])):
        return None
    return list(sides[0].loc[both]), list(sides[1].loc[both])


def _fields(before: Study, after: Study) -> pd.DataFrame:
    rows: list[dict[str, str]] = []
    sections = [("runs", _levels(before.runs), _levels(after.runs))]
    for name in _SECTIONS:
        old, new = (study.manifest.get(name, {}) for study in (before, after))
        # A comparison and a sweep say what they are in other words; their runs are set beside each other above.
        if name != "design" or ("factors" in old) == ("factors" in new):
            sections.append((name, flatten(old), flatten(new)))
    for section, one, other in sections:
        for field in dict.fromkeys([*one, *other]):
            if one.get(field) != other.get(field):
                phrases = [str(values[field]) if field in values else "" for values in (one, other)]
                rows.append({"section": section, "field": field, "before": phrases[0], "after": phrases[1]})
    return pd.DataFrame(rows, columns=["section", "field", "before", "after"], dtype="str")


def _levels(runs: pd.DataFrame) -> dict[str, str]:
    """Return the levels of each factor of the runs, in words."""
    columns = [*CONDITION, "retries", "node_mode"]
    result = {name: join_names([level(value) for value in sorted(set(runs[name].tolist()))]) for name in columns}
    result["arms"] = join_names([one_line(arm) for arm in with_arms(runs)["arm"].cat.categories])
    seeds = sorted(runs["seed"].unique())
    result["seeds"] = f"{len(seeds)}, from {seeds[0]} to {seeds[-1]}" if seeds else "none"
    return result


def _label(key: tuple[Any, ...], apart: Sequence[str]) -> str:
    return _named(dict(zip([*apart, "arm"], key, strict=True)), apart)


def _named(row: Mapping[Any, Any], apart: Sequence[str]) -> str:
    """Name an arm with its condition: "A cooperative (10 s decision timeout, fault hang)"."""
    return one_line(str(row["arm"])) + (f" ({in_words(row, apart)})" if apart else "")


def _field(row: Mapping[Any, Any]) -> str:
    """Return a field that differs in one line. A profile's quantiles are for a machine: JSON has them whole."""
    values = (str(row[side]) or "(none)" for side in _SIDES)
    before, after = (text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…" for text in values)
    return f"{row['section']} {row['field']}: {before} → {after}"


def _change(row: Mapping[Any, Any], apart: Sequence[str]) -> str:
    """Return a difference with its interval: "A cooperative: answered in time 0.75 → 0.00, −0.75 [−0.87, −0.56]"."""
    measure = MEASURES[row["measure"]]
    before, after = (f"{row[side]:.{measure.digits}f}" for side in _SIDES)
    change = measure.change(row["difference"], row["low"], row["high"])
    return f"{_named(row, apart)}: {measure.words} {before} → {after}{measure.unit}, {change}"


def _sentence(row: Mapping[Any, Any], apart: Sequence[str]) -> str:
    judged = "worse" if row["worse"] else "better"
    bounds = ""
    if row["open_before"] or row["open_after"]:
        bounds = (
            f" These are lower bounds: {row['open_before']} of {row['runs_before']} and {row['open_after']} of "
            f"{row['runs_after']} runs were not over at the horizon."
        )
    return f"{_change(row, apart)}, {judged} (corrected p {p_text(row['p_corrected'])}).{bounds}"
