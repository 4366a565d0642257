from __future__ import annotations

import dataclasses
import math
from typing import Any

import pandas as pd
import pytest
from sample_runs import LEVELS, MANIFEST, sample_run, study_of

from docmind_lab.analysis.manifest import chosen_by
from docmind_lab.analysis.summary import Summary, summarise
from docmind_lab.analysis.tables.records import RunRecord
from docmind_lab.analysis.text import in_python
from docmind_lab.core.catalogue import label_of


def summary_of(*records: RunRecord) -> Summary:
    return summarise(study_of(list(records)).runs, MANIFEST)


def test_alternatives_stand_in_the_order_of_the_decision_record_control_first() -> None:
    summary = summary_of(*(sample_run(level, 0) for level in reversed(LEVELS)))
    assert list(summary.table["alternative"]) == list(LEVELS)


def test_an_unfinished_run_counts_with_its_whole_horizon() -> None:
    unfinished = sample_run("unguarded", 1, outcome="unfinished", returned_at_s=math.nan, caller_overrun_s=math.nan)
    row = summary_of(sample_run("unguarded", 0), unfinished).table.iloc[0]
    assert row["caller_overrun_worst_s"] == 8.0
    assert row["unfinished"] == 1


def test_a_sentence_tells_what_went_on_after_the_deadline() -> None:
    late = sample_run(
        "hard_timeout",
        0,
        outcome="timed_out",
        answered_in_time=False,
        calls_after_deadline=2.0,
        busy_after_deadline_s=3.0,
        late_checkpoints=5,
    )
    sentence = summary_of(late).sentences[0]
    assert "after the deadline 2 calls reached a server and servers worked 3.00 s in all" in sentence
    assert "5 checkpoints came after the return" in sentence
    assert "nothing went on" in summary_of(sample_run("cooperative", 0)).sentences[0]


def test_nothing_went_on_is_said_only_where_no_measure_saw_anything() -> None:
    """Trust 13: work in the process, threads and checkpoints count as the server's log does."""
    for column, value in (("work_overrun_s", 1.5), ("threads_left", 1), ("late_checkpoints", 2)):
        assert "nothing went on" not in summary_of(sample_run("cooperative", 0, **{column: value})).sentences[0]


def test_work_that_was_not_over_when_observation_stopped_is_a_lower_bound() -> None:
    """Trust 9: censored work carries "≥"."""
    summary = summary_of(
        sample_run("hard_timeout", 0, busy_after_deadline_s=8.0, work_overrun_s=8.0, work_censored=True)
    )
    assert summary.display_table()["late server seconds per run"].iloc[0] == "≥ 8.00"
    assert "servers worked at least 8.00 s" in summary.sentences[0]


def test_an_overrun_that_no_run_had_is_not_printed() -> None:
    """Trust 9: the median of 0 and 1.691 is 0.846, which no run had."""
    shown = (
        summary_of(sample_run("unguarded", 0), sample_run("unguarded", 1, caller_overrun_s=1.691))
        .display_table()
        .iloc[0]
    )
    assert (shown["overran"], shown["overran by median (s)"], shown["overran by worst (s)"]) == ("1", "1.69", "1.69")


def test_arms_with_the_same_row_share_one_and_columns_that_do_not_differ_become_words() -> None:
    """Trust 9 and 21: the table spends its columns on what differs."""
    runs = [sample_run(level, 0) for level in ("cooperative", "async_cancellation")]
    table, alike = summary_of(*runs, sample_run("hard_timeout", 0, busy_after_deadline_s=3.0)).short_table()
    assert list(table.index) == ["A, C", "B  hard timeout"]
    assert list(table.columns) == ["late server seconds"]
    assert alike[0].startswith("The same under each: answered in time 1.00")


def test_it_says_where_the_run_without_a_deadline_decides_who_is_in_time() -> None:
    _, alike = summary_of(sample_run("unguarded", 0), sample_run("cooperative", 0)).short_table()
    assert alike[-1].startswith("In 1 of 1 runs an alternative answered in time exactly where")


def test_a_call_on_its_way_as_the_deadline_fell_is_not_blamed_on_the_alternative() -> None:
    late = {"outcome": "partial", "answered_in_time": False, "calls_after_deadline": 1.0}
    assert (
        "on the way as the deadline fell"
        in summary_of(sample_run("async_cancellation", 0, work_overrun_s=0.004, **late)).sentences[0]
    )
    assert (
        "docmind-lab show which call"
        in summary_of(sample_run("async_cancellation", 0, work_overrun_s=1.0, **late)).sentences[0]
    )


def test_without_a_server_log_it_says_that_it_cannot_know() -> None:
    live = sample_run("cooperative", 0, calls_after_deadline=math.nan, busy_after_deadline_s=math.nan)
    summary = summary_of(live)
    assert "cannot be known" in summary.sentences[0]
    assert summary.display_table()["late server seconds per run"].iloc[0] == "–"


def test_the_choice_falls_on_one_that_holds_the_deadline_and_leaves_least_behind() -> None:
    advice = summary_of(
        *(sample_run("cooperative", repeat, outcome="partial") for repeat in range(12)),
        *(sample_run("hard_timeout", repeat, busy_after_deadline_s=1.0 + repeat / 10) for repeat in range(12)),
        *(sample_run("stop_flag", repeat, caller_overrun_s=0.6) for repeat in range(12)),
    ).advice
    assert advice[0].startswith("Choose A cooperative:")
    assert "server time after the deadline: 1.55 s more than A cooperative [" in advice[1]
    (settings,) = [line for line in advice if line.startswith("Settings: ")]
    assert "DOCMIND_AGENTS__DECISION_TIMEOUT=2" in settings
    assert "ENABLE_DEADLINE_PROPAGATION=true" in settings


def test_settings_are_proposed_for_the_labs_own_systems_only() -> None:
    """Trust 14: a graph of one's own does not read the lab's settings."""
    runs = [sample_run(level, repeat) for level in ("cooperative", "hybrid") for repeat in range(12)]
    assert any(line.startswith("Settings: ") for line in summary_of(*runs).advice)
    own = [dataclasses.replace(run, workload="docmind_lab.workloads.own:my_app:graph") for run in runs]
    assert not any(line.startswith("Settings: ") for line in summary_of(*own).advice)


def of_own_graph(*records: RunRecord) -> Summary:
    manifest = {**MANIFEST, "systems": {"my_app:graph": {"kind": "own:my_app:graph", "reads_settings": False}}}
    own = [dataclasses.replace(run, workload="my_app:graph") for run in records]
    return summarise(study_of(own).runs, manifest)


def test_the_advice_on_a_graph_of_ones_own_says_that_no_service_failed_and_who_tries_that() -> None:
    """`compare` said "Choose A, B, C, D, E or F" where `doctor` finds none that keeps the deadline."""
    runs = [sample_run(level, repeat) for level in ("cooperative", "hybrid") for repeat in range(12)]
    advice = of_own_graph(*runs).advice
    assert advice[0].startswith("Choose A cooperative or E hybrid: where no service fails, under each of them every")
    assert "No run reached the deadline of 2 s: nothing here shows how an alternative keeps it." in advice
    assert any("No service failed here: docmind-lab doctor --graph tries the worst faults" in line for line in advice)
    faulty = of_own_graph(*(dataclasses.replace(run, fault="hang", faulted_calls=1) for run in runs)).advice
    assert "where no service fails" not in faulty[0]
    assert any("Only hang was tried: docmind-lab doctor" in line for line in faulty)


def test_a_run_that_reached_the_deadline_shows_how_it_was_kept() -> None:
    cut = {"outcome": "partial", "answered_in_time": False, "stop_reason": "deadline", "returned_at_s": 2.0}
    runs = [sample_run(level, n, **(cut if n == 3 else {})) for level in ("cooperative", "hybrid") for n in range(12)]
    assert not any("No run reached the deadline" in line for line in of_own_graph(*runs).advice)


def test_one_run_says_nothing_about_which_alternative_to_choose() -> None:
    cut = {"outcome": "partial", "answered_in_time": False, "stop_reason": "deadline", "returned_at_s": 2.0}
    late = {"answered_in_time": False, "returned_at_s": 5.0, "caller_overrun_s": 3.0}
    runs = [sample_run(level, 0, **(late if level == "unguarded" else cut)) for level in ("unguarded", *LEVELS[1:4])]
    text = " ".join(summary_of(*runs).advice)
    assert "1 of each is compared seed by seed" in text
    assert "Choose among them" not in text
    assert "who stops best" not in text


def test_advice_in_python_names_keywords_and_on_the_command_line_options() -> None:
    few = [sample_run(level, n) for level in ("cooperative", "hybrid") for n in range(2)]
    summary = summary_of(*few)
    assert "Add --runs 24 or more" in summary.advice[0]
    assert "Add runs=24 or more" in summary.text()
    assert not [word for word in summary.markdown().split() if word.startswith("--") and word.strip("-|:")]


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        ("Add --runs 24 or more.", "Add runs=24 or more."),
        ("--fault hang and --fault http_500@1 show it.", "fault='hang' and fault='http_500@1' show it."),
        ("Answer with --resume (resume=[...]).", "Answer with resume=[...]."),
        ("Its line: docmind-lab doctor --graph my_app:graph.", "Its line: docmind-lab doctor --graph my_app:graph."),
    ],
)
def test_an_option_becomes_the_keyword_and_a_command_stays(options: str, keywords: str) -> None:
    assert in_python(options) == keywords


def test_failures_are_named_once_with_their_node_and_count() -> None:
    """Trust 14."""
    failed = {"outcome": "failed", "answered_in_time": False, "error_type": "KeyError", "error_node": "planner"}
    advice = summary_of(*(sample_run("cooperative", repeat, **failed) for repeat in range(3))).advice
    assert advice[0] == "Nothing to choose: every run under A cooperative failed."
    assert "Failed: 3 of 3 runs, with KeyError in node planner." in advice


def test_where_every_run_without_a_deadline_failed_nothing_is_chosen() -> None:
    """Agents 0, trust 14: an alternative that cut some runs before they failed is no better for that."""
    failed = {"outcome": "failed", "answered_in_time": False, "error_type": "KeyError"}
    cut = {"outcome": "timed_out", "answered_in_time": False}
    runs = [
        *(sample_run("unguarded", repeat, **failed) for repeat in range(12)),
        *(sample_run("cooperative", repeat, **(cut if repeat % 2 else failed)) for repeat in range(12)),
        *(sample_run("hard_timeout", repeat, **(cut if repeat % 2 else failed)) for repeat in range(12)),
    ]
    advice = summary_of(*runs).advice
    assert advice[0].startswith("Nothing to choose: every run without a deadline failed")
    assert not any(line.startswith(("Choose", "Not told apart", "Settings")) for line in advice)
    answered = [dataclasses.replace(runs[0], outcome="answered"), *runs[1:]]
    assert not summary_of(*answered).advice[0].startswith("Nothing to choose: every run without")


def test_it_says_what_of_a_replay_was_not_recorded_and_what_ended_a_study() -> None:
    runs = study_of([sample_run("cooperative", 0)]).runs
    calls = {"recorded": 1_200, "of_another_alternative": 3, "not_recorded": 4, "cut_in_the_recording": 5}
    calls |= {"longer_than_observed": 2}
    manifest = {**MANIFEST, "replayed_calls": calls, "ended_by": "max_requests=60"}
    *_, replayed, longer, ended = summarise(runs, manifest).advice
    assert "1,200 calls as they were recorded, 3 as another alternative's were, 4 drawn" in replayed
    assert "5 were cut in the recording" in replayed
    assert longer.startswith("2 calls of the replay drew a length beyond what the recording could observe")
    assert "shares answered in time are lower bounds" in longer
    assert ended.startswith("Ended by max_requests=60")


def test_one_answer_more_decides_nothing() -> None:
    runs = [sample_run(level, repeat) for level in ("cooperative", "async_cancellation") for repeat in range(12)]
    runs[0] = sample_run("cooperative", 0, outcome="partial", answered_in_time=False)
    advice = summary_of(*runs).advice
    assert advice[0].startswith("Choose A cooperative or C async cancellation: these runs do not tell them apart;")
    assert "11 to 12 of 12 runs were answered in time" in advice[0]
    assert any(line.startswith("Not told apart: the share answered in time, better under C") for line in advice)


def test_when_none_held_the_deadline_it_says_so() -> None:
    advice = summary_of(sample_run("stop_flag", 0, caller_overrun_s=0.6)).advice
    assert "no alternative had its callers back within 150 ms of the deadline" in advice[0]
    assert "D stop flag came closest: late in 1 of 1 runs, at worst by 0.60 s" in advice[0]


def test_the_control_is_never_recommended() -> None:
    advice = summary_of(sample_run("unguarded", 0)).advice
    assert advice[0] == "Nothing to choose from: no alternative that enforces the deadline was run."


def test_a_control_that_was_watched_no_longer_is_no_evidence_that_no_timeout_would_do() -> None:
    unfinished = sample_run("unguarded", 1, outcome="unfinished", returned_at_s=math.nan, caller_overrun_s=math.nan)
    failed = sample_run("unguarded", 2, outcome="failed", answered_in_time=False)
    advice = " ".join(summary_of(sample_run("unguarded", 0), unfinished, sample_run("cooperative", 0)).advice)
    assert (
        "Without a deadline, 1 of 2 runs had not ended after 10 s, when observation stopped. No timeout up to then "
        "would have had them answered."
    ) in advice
    with_failed = " ".join(summary_of(unfinished, failed, sample_run("cooperative", 0)).advice)
    assert "1 of 2 runs failed, which no timeout changes." in with_failed


def test_a_choice_without_a_servers_log_makes_up_no_server_seconds() -> None:
    choice = summary_of(sample_run("cooperative", 0, busy_after_deadline_s=math.nan)).advice[0]
    assert "servers worked" not in choice
    assert "what servers did after the deadline is not known without their log" in choice
    assert "servers worked 0.00 s a run" in summary_of(sample_run("cooperative", 0)).advice[0]


def test_variants_are_told_apart_by_their_options() -> None:
    assert label_of("hard_timeout", '{"naive": true}') == "B  hard timeout (naive)"
    assert label_of("cooperative", '{"cap": "per_read"}') == "A  cooperative (cap=per_read)"
    summary = summary_of(
        sample_run("hard_timeout", 0), sample_run("hard_timeout", 1, alternative_options='{"naive": true}')
    )
    assert list(summary.table.index) == ["B  hard timeout", "B  hard timeout (naive)"]


def test_the_markdown_holds_title_table_sentences_and_advice() -> None:
    text = summary_of(sample_run("cooperative", 0), sample_run("unguarded", 0)).markdown()
    assert text.startswith("# DocMind supervisor · 2 s decision timeout · 1 question · typical/6 latencies")
    assert "| A  cooperative | 1 |" in text
    assert "Without a deadline, half of the runs" in text


def test_the_share_in_time_has_its_wilson_interval() -> None:
    runs = [sample_run("cooperative", repeat) for repeat in range(30)]
    runs += [sample_run("cooperative", repeat, outcome="partial", answered_in_time=False) for repeat in range(30, 40)]
    summary = summary_of(*runs)
    row = summary.table.iloc[0]
    # Wilson (1927) for 30 of 40.
    assert (row["in_time_share"], round(row["in_time_low"], 3), round(row["in_time_high"], 3)) == (0.75, 0.598, 0.858)
    assert summary.display_table()["in time (95 %)"].iloc[0] == "0.75 [0.60, 0.86]"


def several_timeouts(in_time: int) -> Summary:
    return summary_of(
        *(
            sample_run(
                level,
                repeat,
                run_id=f"{level}-{timeout_s}-{repeat}",
                decision_timeout_s=timeout_s,
                horizon_s=5 * timeout_s,
                answered_in_time=repeat < in_time,
                outcome="answered" if repeat < in_time else "partial",
            )
            for level in ("unguarded", "cooperative")
            for timeout_s in (2.0, 4.0)
            for repeat in range(80)
        )
    )


def test_several_decision_timeouts_stand_in_rows_of_their_own_and_one_is_recommended() -> None:
    summary = several_timeouts(in_time=80)
    assert list(summary.table["decision_timeout_s"]) == [2.0, 2.0, 4.0, 4.0]
    assert list(summary.display_table()["decision timeout (s)"]) == ["2", "2", "4", "4"]
    assert summary.title.startswith("DocMind supervisor · 2 and 4 s decision timeout")
    assert "DOCMIND_AGENTS__DECISION_TIMEOUT=2 " in summary.advice[-1]


def test_when_no_decision_timeout_will_do_several_conditions_say_so() -> None:
    summary = several_timeouts(in_time=20)
    assert "Nothing to choose" in summary.advice[0]
    assert not any("Settings" in line for line in summary.advice)


def test_other_conditions_stand_apart_too() -> None:
    summary = summary_of(
        *(
            sample_run("cooperative", repeat, fault=fault, run_id=f"{fault}-{repeat}")
            for fault in ("none", "hang")
            for repeat in range(3)
        )
    )
    assert list(summary.table["fault"]) == ["none", "hang"]
    assert "compare_to" in summary.advice[0]


@pytest.mark.parametrize(
    ("workload", "system", "chosen"),
    [
        ("my_app:graph", {"kind": "own:my_app:graph", "reads_settings": False}, "enforce"),
        ("agent:my_app:answer", {"kind": "own:agent:my_app:answer", "reads_settings": False}, "nothing"),
        ("node agent.mjs", {"kind": "program:node agent.mjs", "reads_settings": False}, "nothing"),
        ("supervisor", {"kind": "supervisor", "reads_settings": True}, "settings"),
        ("supervisor", None, "settings"),
        ("my_package:KIND", None, "nothing"),
    ],
)
def test_what_a_choice_is_made_by_is_that_of_the_kind_of_system(
    workload: str, system: dict[str, Any] | None, chosen: str
) -> None:
    """The last two are of manifests that do not say what their systems are."""
    manifest = {} if system is None else {"systems": {workload: system}}
    assert chosen_by(pd.DataFrame({"workload": [workload]}), manifest) == chosen
