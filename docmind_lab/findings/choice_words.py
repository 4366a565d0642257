"""Advice on which arm of one condition to choose, in sentences.

`findings.choice` decides; here it is put into words, with the settings to paste and what the runs cannot say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from docmind_lab.core.alternative_catalogue import Chooses, choice_to_paste, with_label
from docmind_lab.core.levels import TIMEOUT_REASONS
from docmind_lab.core.text import count_of, guessed_shape, join_names, node_in_words, one_line, percent
from docmind_lab.findings.choice import ENDED, FEWEST_PAIRS, HELD, Choice, choose
from docmind_lab.findings.endings import budget_notes, control_failed, ended_by_budget, errors_in_words
from docmind_lab.findings.recommendation_words import LOWER_BOUND
from docmind_lab.statistics.shares import share_of_unseen
from docmind_lab.tables.conditions import CONTROL

Row = Mapping[str, Any]


def advice_of(
    rows: Sequence[Row], runs: pd.DataFrame, cpu_s_per_run: float | None = None, *, chosen_by: Chooses = "settings"
) -> Iterator[str]:
    """Yield sentences of advice: what to choose, why, what stays open, and the settings; the choice comes first.

    rows: rows of `summary.Summary.table`, one for each arm, with their `label`. runs: the runs that the rows are of, of
    one condition. cpu_s_per_run: CPU seconds that a run took, as the manifest has them; None if it has none. chosen_by:
    by what the system is given the choice in production.
    """
    result = choose(runs)
    by_label = {str(row["label"]): row for row in rows}
    enforcing = [row for row in rows if row["alternative"] != CONTROL]
    if not enforcing:
        yield "Nothing to choose from: no alternative that enforces the deadline was run."
    elif not result.chosen:
        yield _no_choice(result, by_label)
    elif control_failed(runs):
        yield (
            "Nothing to choose: every run without a deadline failed, so there is no answer that a deadline could cost "
            "or keep. Have the runs answer first."
        )
    else:
        yield from _choice(result, by_label, runs, chosen_by)
    yield from _failures(rows, runs, chosen_by)
    if (runs["fault"].astype("str") != "none").all() and runs["faulted_calls"].sum(skipna=False) == 0:
        yield f"The fault {runs['fault'].iloc[0]} struck no call of any run: nothing here shows what it does."
    yield from budget_notes(runs)
    control = next((row for row in rows if row["alternative"] == CONTROL), None)
    if control is not None:
        yield _timeout_advice(control, float(runs["horizon_s"].iloc[0]))
    yield _limits(rows, runs, cpu_s_per_run, chosen_by)


def _met_deadline(runs: pd.DataFrame) -> bool:
    """Whether the deadline ended or was passed by some run, the control among them."""
    ended = runs["stop_reason"].astype("str").isin(TIMEOUT_REASONS)
    in_time = runs["returned_at_s"] <= runs["decision_timeout_s"]
    went_on = (runs["work_overrun_s"] > 0) | (runs["busy_after_deadline_s"] > 0)
    return bool((ended | ~in_time | went_on).any())


def _choice(choice: Choice, rows: Mapping[str, Row], runs: pd.DataFrame, chosen_by: Chooses) -> Iterator[str]:
    preferred = choice.preferred
    names = _names(preferred, "or")
    if len(rows) - ("unguarded" in {row["alternative"] for row in rows.values()}) == 1:
        yield f"Only {names} was run: {_facts(preferred, rows, runs, chosen_by)}"
    elif choice.too_few:
        yield (
            f"Too few runs to choose among {_names(choice.chosen)}: {choice.runs} of each "
            f"{'is' if choice.runs == 1 else 'are'} compared seed by seed, and nothing is told apart below "
            f"{FEWEST_PAIRS}. Add --runs {2 * FEWEST_PAIRS} or more."
        )
    else:
        open_pairs = [item for item in choice.undecided if {item.first, item.second} <= set(preferred)]
        not_told = "these runs do not tell them apart; " if open_pairs else ""
        yield f"Choose {names}: {not_told}{_facts(preferred, rows, runs, chosen_by)}"
    yield from choice.evidence()
    yield from (item.text() for item in choice.undecided)
    if len(preferred) > 1:
        same = [f"{_names(group)} gave the same result in every run." for group in choice.same]
        by_price = ["Choose among them by what each asks of your code: --verbose lists it."] * (not choice.too_few)
        if same or by_price:
            yield " ".join([*same, *by_price])
    first, timeout_s = rows[preferred[0]], float(runs["decision_timeout_s"].iloc[0])
    if not choice.too_few and not any(rows[arm]["answered_in_time"] for arm in preferred):
        yield f"Nobody was answered in time: this says who stops best, not that {timeout_s:g} s are enough."
    if not _met_deadline(runs):
        yield f"No run reached the deadline of {timeout_s:g} s: nothing here shows how an alternative keeps it."
    chosen = str(first["alternative"]), timeout_s, str(first["alternative_options"])
    if not choice.too_few and (line := choice_to_paste(chosen_by, *chosen)):
        yield with_label(line)


def _facts(chosen: Sequence[str], rows: Mapping[str, Row], runs: pd.DataFrame, chosen_by: Chooses) -> str:
    """Return a sentence of facts that hold for every chosen arm."""
    members = [rows[arm] for arm in chosen]
    # Of a graph of one's own, doctor says what happens where services do fail.
    where = "where no service fails, " if chosen_by == "enforce" and _is_without_fault(runs) else ""
    late = [row for row in members if row["overran"]]
    parts = []
    if late:
        waited = [f"{_name(row)} in {row['overran']} of {row['runs']} runs" for row in late]
        parts.append(f"{where}the caller waited too long under {join_names(waited)}")
    else:
        each = "each of them" if len(chosen) > 1 else "it"
        parts.append(f"{where}under {each} every caller was back {HELD}")
    answered = _range([row["answered_in_time"] for row in members])
    parts.append(f"{answered} of {members[0]['runs']} runs were answered in time")
    busy = [row["busy_after_deadline_s"] for row in members]
    if any(math.isnan(value) for value in busy):
        parts.append("what servers did after the deadline is not known without their log, and decided nothing")
    else:
        least = "at least " if any(row["work_censored"] for row in members) else ""
        parts.append(f"servers worked {least}{_range(busy, 2)} s a run after the deadline")
    went_on: dict[str, list[str]] = {}
    for row in members:
        if row["worked_on"]:
            least = "at least " if row["work_censored"] else ""
            until = f"{least}{row['work_overrun_worst_s']:.1f} s"
            text = f"work went on in {count_of(row['worked_on'], 'run')}, for up to {until}"
            went_on.setdefault(text, []).append(_name(row))
    parts += [f"under {join_names(names)} {text}" for text, names in went_on.items()]
    return f"{'; '.join(parts)}."


def _range(values: Sequence[float], digits: int = 0) -> str:
    """Return the common value, or the least and the greatest: "20", "18 to 20"."""
    texts = list(dict.fromkeys(f"{value:.{digits}f}" for value in sorted(values)))
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def _no_choice(choice: Choice, rows: Mapping[str, Row]) -> str:
    """Return a sentence on why no arm can be chosen."""
    why = {arm: reason for arm, reason in choice.refused.items() if rows[arm]["alternative"] != CONTROL}
    ended = {reason: [arm for arm, each in why.items() if each == reason] for reason in ENDED}
    phrases = [ENDED[reason].format(f" under {_names(arms)}") for reason, arms in ended.items() if arms]
    if sum(map(len, ended.values())) == len(why):
        return f"Nothing to choose: {join_names(phrases)}."
    late = [rows[arm] for arm, reason in why.items() if reason == "late"]
    others = "".join(f" {phrase[0].upper()}{phrase[1:]}." for phrase in phrases)
    if not late:
        return f"Nothing to choose: only documented mistakes were run, which are never recommended.{others}"
    best = min(late, key=lambda row: (row["overran"], row["caller_overrun_worst_s"]))
    least = "at least " if best["unfinished"] else ""
    return (
        f"Nothing to choose: no alternative had its callers back {HELD}. {_name(best)} came closest: late in "
        f"{best['overran']} of {best['runs']} runs, at worst by {least}{best['caller_overrun_worst_s']:.2f} s.{others}"
    )


def _failures(rows: Sequence[Row], runs: pd.DataFrame, chosen_by: Chooses) -> Iterator[str]:
    """Yield which errors ended runs, each once, with the node and the count."""
    failed = runs[(runs["outcome"].astype("str") == "failed") & ~ended_by_budget(runs)]
    waiting = runs[runs["outcome"].astype("str") == "interrupted"]
    if len(waiting):
        nodes = [str(node) for node in waiting["error_node"].unique() if node]
        yield (
            f"Interrupted: {len(waiting)} of {count_of(len(runs), 'run')} stopped to wait for a person "
            f"{f'in node {join_names(nodes)}' if nodes else 'at a breakpoint'}. "
            'Each interrupt takes an answer: --resume (resume=[...]), or "resume" beside "input" in its line.'
        )
    if failed.empty:
        return
    # Tables keep no words of an error, which may quote what a user asked.
    where = " What it says, and its line: docmind-lab doctor --graph." if chosen_by == "enforce" else ""
    yield f"Failed: {len(failed)} of {len(runs)} runs, with {errors_in_words(failed)}.{where}"


def _timeout_advice(control: Row, horizon_s: float) -> str:
    """Return what the control shows about a timeout; a run cut at the horizon might still have answered."""
    phrases = []
    if control["unfinished"]:
        phrases.append(
            f"{control['unfinished']} of {count_of(control['runs'], 'run')} had not ended after {horizon_s:g} s, when "
            "observation stopped. No timeout up to then would have had them answered"
        )
    if control["interrupted"]:
        phrases.append(f"{control['interrupted']} of {count_of(control['runs'], 'run')} waited for a person")
    if control["failed"]:
        phrases.append(f"{control['failed']} of {count_of(control['runs'], 'run')} failed, which no timeout changes")
    if phrases:
        return f"Without a deadline, {'; '.join(phrases)}."
    took = f"half of the runs took up to {control['returned_median_s']:.2f} s and the longest"
    return (
        f"Without a deadline, {took if control['runs'] > 1 else 'the run took'} {control['returned_worst_s']:.2f} s: "
        "that is what a timeout must exceed to have these questions answered."
    )


def _is_without_fault(runs: pd.DataFrame) -> bool:
    return bool((runs["fault"].astype("str") == "none").all())


def _limits(rows: Sequence[Row], runs: pd.DataFrame, cpu_s_per_run: float | None, chosen_by: Chooses) -> str:
    """Return what these runs cannot show, and what to run next."""
    fewest = min(row["runs"] for row in rows)
    rare = percent(share_of_unseen(fewest))
    text = f"Limits: an event that no run of {fewest} showed may still occur in up to {rare} of runs."
    clocks = {str(clock) for clock in runs["clock"]}
    if clocks == {"trace"}:
        text += " No agent ran: recorded runs were replayed, and knew nothing of this deadline."
    elif "wall" in clocks:
        text += " Differences of a few milliseconds are noise of this machine."
    else:
        text += " In virtual time the work of Python itself takes no time; --clock wall includes it."
        if cpu_s_per_run is not None:
            text += (
                f" A run took {cpu_s_per_run:.2g} s of it on this machine, and a real run is later by up to as much."
            )
    control = next((row for row in rows if row["alternative"] == CONTROL and not row["unfinished"]), None)
    ceiling = float("nan") if control is None else control["source_recall"]
    if 0 < ceiling < 1 and all(not row["source_recall"] > ceiling for row in rows):
        text += f" Source recall ends at {ceiling:.2f}: without any limit, the control's retrieval finds no more."
    # Faults strike models and searches. A run that failed may not have come to its first.
    could_be_struck = (runs["llm_calls"] + runs["retrieval_calls"] > 0) | (runs["outcome"].astype("str") == "failed")
    if chosen_by == "enforce":
        tried = "No service failed here" if _is_without_fault(runs) else f"Only {runs['fault'].iloc[0]} was tried"
        text += (
            f" {tried}: docmind-lab doctor --graph tries the worst faults, and says which alternatives keep the "
            "deadline."
        )
    elif could_be_struck.any() and _is_without_fault(runs):
        text += " No server failed here: --faults hang and --faults trickle show what happens then."
    return text


def _names(arms: Sequence[str], last: str = "and") -> str:
    return join_names([one_line(arm) for arm in arms], last)


def _name(row: Row) -> str:
    return one_line(row["label"])


# What the manifest counts by name, and what is said of it: {} is the name.
_COUNTED: Final[Mapping[str, str]] = {
    "loops_blocked": (
        "of E {} blocked the event loop past the deadline. The caller was outside the loop (invoke) and left it "
        "behind; one that awaits E (ainvoke) waits until the block ends."
    ),
    "errors_in_state": (
        "the graph came to its end with an error of its own in its state, under {}. They count as they ended, such as "
        "answered."
    ),
    "outputs_not_set": (
        "the graph came to its end without a value of {}, which it declares as its output. They count as they ended, "
        "such as answered."
    ),
}


_NOT_IN_STORE: Final = (
    "the graph asked for the {}, which the simulated store does not have. The answers are made up, in the shape that "
    "was asked for: their times count, and what they say does not."
)


def caveats(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield caveats: cells that failed, what a user's graph did not do, calls of a replay, a cap that ended runs."""
    if failed := manifest.get("failed_cells"):
        yield (
            f"Not complete: {count_of(len(failed), 'cell')} of runs failed twice and "
            f"{'is' if len(failed) == 1 else 'are'} left out ({failed[0]['cell']}: {failed[0]['reason']}). The same "
            "call tries again."
        )
    if manifest.get("no_model_calls"):
        yield (
            "No run called a model, so these are times of the graph's own code. If one should have, look for a caught "
            "exception, a missing setting, or an input that does not lead there."
        )
    for counted, words in _COUNTED.items():
        for name, runs in manifest.get(counted, {}).items():
            yield f"In {count_of(runs, 'run')} {words.format(name or 'a coroutine')}"
    for what, runs in manifest.get("made_up_answers", {}).items():
        kind, _, name = what.partition(" ")
        in_words = guessed_shape(name) if kind == "shape" else _NOT_IN_STORE.format(what)
        yield f"In {count_of(runs, 'run')} {in_words}"
    if calls := manifest.get("failed_calls"):
        share = calls["failed"] / calls["requests"]
        where = f", most of them in {calls['node']}" if calls["node"] else ""
        yield (
            f"{calls['failed']:,} of {count_of(calls['requests'], 'request')} failed ({share:.1%}{where}), by an error "
            "and not by the deadline."
        )
    if missing := manifest.get("never_reached"):
        yield f"No run reached {join_names(_unreached(missing))}, of which these numbers say nothing."
    if calls := manifest.get("replayed_calls"):
        yield (
            f"A replay: {calls['recorded']:,} calls as they were recorded, {calls['of_another_alternative']:,} as "
            f"another alternative's were, {calls['not_recorded']:,} drawn from those of their role; "
            f"{calls['cut_in_the_recording']:,} were cut in the recording, and what follows the cut is drawn."
        )
        if calls.get("longer_than_observed"):
            yield f"{count_of(calls['longer_than_observed'], 'call')} of the replay {LOWER_BOUND}."
    for system in manifest.get("systems", {}).values():
        yield from system.get("notes", ())
    if "ended_by" in manifest:
        yield f"Ended by {manifest['ended_by']}: the runs that are here are whole, the others were not made."


def _unreached(missing: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the nodes and tools that no run reached, as a sentence names them."""
    words = {name: node_in_words(name) for name in missing.get("nodes", ())}
    plain = {**missing, "nodes": [name for name, text in words.items() if text == f"node {name}"]}
    names = [
        f"{kind[:-1] if len(each) == 1 else kind} {join_names(list(each))}" for kind, each in plain.items() if each
    ]
    return names + [text for name, text in words.items() if text != f"node {name}"]
