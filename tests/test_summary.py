from __future__ import annotations

import math

from sample_runs import LEVELS, MANIFEST, sample_run, study_of

from docmind_lab.labels import label_of
from docmind_lab.records import RunRecord
from docmind_lab.summary import Summary, summarise


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
        "hard_timeout", 0, outcome="timed_out", answered_in_time=False, calls_after_deadline=2.0, late_checkpoints=5
    )
    sentence = summary_of(late).sentences[0]
    assert "2 more calls reached a server and 5 checkpoints came after the return" in sentence
    assert "nothing went on" in summary_of(sample_run("cooperative", 0)).sentences[0]


def test_a_call_on_its_way_as_the_deadline_fell_is_not_blamed_on_the_alternative() -> None:
    late = {"outcome": "partial", "answered_in_time": False, "calls_after_deadline": 1.0}
    assert (
        "on the way as the deadline fell"
        in summary_of(sample_run("async_cancellation", 0, work_overrun_s=0.004, **late)).sentences[0]
    )
    assert (
        "the calls table tells which"
        in summary_of(sample_run("async_cancellation", 0, work_overrun_s=1.0, **late)).sentences[0]
    )


def test_without_a_server_log_it_says_that_it_cannot_know() -> None:
    live = sample_run("cooperative", 0, calls_after_deadline=math.nan, busy_after_deadline_s=math.nan)
    summary = summary_of(live)
    assert "cannot be known" in summary.sentences[0]
    assert summary.display_table()["late server seconds per run"].iloc[0] == "–"


def test_the_choice_falls_on_one_that_holds_the_deadline_and_leaves_least_behind() -> None:
    advice = summary_of(
        sample_run("cooperative", 0, outcome="partial"),
        sample_run("hard_timeout", 0, busy_after_deadline_s=1.0),
        sample_run("stop_flag", 0, caller_overrun_s=0.6),
    ).advice
    assert advice[0].startswith("Choose A cooperative:")
    assert "DOCMIND_AGENTS__DECISION_TIMEOUT=2" in advice[1]
    assert "ENABLE_DEADLINE_PROPAGATION=true" in advice[1]


def test_what_the_caller_was_left_with_is_not_said_where_nothing_is_gold() -> None:
    advice = summary_of(sample_run("cooperative", 0, source_recall=math.nan)).advice[0]
    assert "source recall" not in advice
    assert "with the most (1 of 1 answered in time)" in advice


def test_it_says_what_of_a_replay_was_not_recorded_and_what_ended_a_study() -> None:
    runs = study_of([sample_run("cooperative", 0)]).runs
    calls = {"recorded": 1_200, "of_another_alternative": 3, "not_recorded": 4, "cut_in_the_recording": 0}
    manifest = {**MANIFEST, "replayed_calls": calls, "ended_by": "max_requests=60"}
    *_, replayed, ended = summarise(runs, manifest).advice
    assert "1,200 calls as they were recorded, 3 as another alternative's were, 4 drawn" in replayed
    assert ended.startswith("Ended by max_requests=60")


def test_one_answer_more_decides_nothing() -> None:
    runs = [sample_run(level, repeat) for level in ("cooperative", "async_cancellation") for repeat in range(8)]
    runs[0] = sample_run("cooperative", 0, outcome="partial", answered_in_time=False)
    assert "A cooperative or C async cancellation" in summary_of(*runs).advice[0]


def test_when_none_held_the_deadline_it_says_so() -> None:
    advice = summary_of(sample_run("stop_flag", 0, caller_overrun_s=0.6)).advice
    assert advice[0].startswith("None held the deadline within 150 ms; D stop flag came closest, 0.60 s")


def test_the_control_is_never_recommended() -> None:
    advice = summary_of(sample_run("unguarded", 0)).advice
    assert advice == ("Nothing to choose from: no alternative that enforces the deadline was run.",)


def test_a_control_that_was_watched_no_longer_is_no_evidence_that_no_timeout_would_do() -> None:
    unfinished = sample_run("unguarded", 1, outcome="unfinished", returned_at_s=math.nan, caller_overrun_s=math.nan)
    failed = sample_run("unguarded", 2, outcome="failed", answered_in_time=False)
    advice = " ".join(summary_of(sample_run("unguarded", 0), unfinished, sample_run("cooperative", 0)).advice)
    assert (
        "Left alone, 1 of 2 runs had not come to an end at the horizon, 10 s: a timeout must exceed that to answer "
        "them, and by how much is not known."
    ) in advice
    assert "no timeout would have answered" not in advice
    with_failed = " ".join(summary_of(unfinished, failed, sample_run("cooperative", 0)).advice)
    assert "is not known; 1 of 2 runs failed, which no timeout would have answered." in with_failed


def test_a_choice_without_a_servers_log_makes_up_no_server_seconds() -> None:
    choice = summary_of(sample_run("cooperative", 0, busy_after_deadline_s=math.nan)).advice[0]
    assert "server-seconds" not in choice
    assert "What went on afterwards is not known without the servers' log, and decided nothing." in choice
    assert "server-seconds" in summary_of(sample_run("cooperative", 0)).advice[0]


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
    assert "Left alone" in text


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
