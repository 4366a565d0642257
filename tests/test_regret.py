"""Regret against a clairvoyant (policies.md 7)."""

from __future__ import annotations

import itertools
import json
import math
import random
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import docmind_lab as dl
from docmind_lab.analysis.plots.look import blank_axes
from docmind_lab.analysis.regret import (
    PROBE_POLICY,
    BestResults,
    Clairvoyant,
    PolicyRanking,
    best_results,
    rank_policies,
    rank_under_load,
)
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.load import Poisson
from docmind_lab.experiments.policy_ranking import probe_of, rank_by_regret, rank_load_by_regret
from docmind_lab.experiments.sweeps.design import StudyDesign
from docmind_lab.interfaces.cli.app import app

# ---- the best that one run could have come to


@dataclass(frozen=True)
class SmallRun:
    """Stages of calls side by side, one after the other; then calls in a row that make the answer.

    stages: the two latencies of each call, and what share of all there is to find is there when the stage has ended.
    answering: the two latencies of each call that follows. score: of an answer from everything.
    """

    stages: tuple[tuple[tuple[tuple[float, float], ...], float], ...]
    answering: tuple[tuple[float, float], ...]
    score: float

    def marks(self) -> list[tuple[float, float, float]]:
        """What a run records in which every call is made twice at once."""
        found, now = [], 0.0
        for calls, recall in self.stages:
            now += max(min(both) for both in calls)
            found.append((now, recall, 0.0))
        now += sum(min(both) for both in self.answering)
        return [*found, (now, self.stages[-1][1], self.score)]

    def everything_tried(self) -> list[tuple[float, float]]:
        """Every choice of second requests and of the stage to stop after: its end and its score."""
        calls = [both for stage, _ in self.stages for both in stage] + list(self.answering)
        found = []
        for hedged in itertools.product((False, True), repeat=len(calls)):
            took = iter(min(both) if twice else both[0] for both, twice in zip(calls, hedged, strict=True))
            stages = [max([next(took) for _ in stage]) for stage, _ in self.stages]
            answer_s = sum(took)
            for stop in range(1, len(stages) + 1):
                share = self.stages[stop - 1][1] / self.stages[-1][1]
                found.append((sum(stages[:stop]) + answer_s, self.score * share))
        return found


def small_run(seed: int) -> SmallRun:
    draw = random.Random(seed)

    def both() -> tuple[float, float]:
        return draw.lognormvariate(0, 1), draw.lognormvariate(0, 1)

    recalls = sorted(draw.uniform(0.1, 1.0) for _ in range(draw.randint(1, 3)))
    stages = tuple((tuple(both() for _ in range(draw.randint(1, 2))), recall) for recall in recalls)
    return SmallRun(stages, tuple(both() for _ in range(draw.randint(1, 2))), draw.choice([0.25, 0.5, 1.0]))


@pytest.mark.parametrize("seed", range(40))
def test_no_choice_of_second_requests_and_stops_is_better_than_the_clairvoyants(seed: int) -> None:
    run = small_run(seed)
    best, tried = best_results(run.marks()), run.everything_tried()
    ends = sorted({end for end, _ in tried})
    for deadline_s in [0.0, *ends, *(end + 1e-6 for end in ends), ends[-1] + 10]:
        reachable = max((score for end, score in tried if end <= deadline_s + 1e-9), default=0.0)
        assert best.by(deadline_s + 1e-9) == pytest.approx(reachable), deadline_s


def test_the_mean_over_instants_is_the_area_under_the_steps() -> None:
    best = BestResults((2.0, 4.0), (0.5, 1.0))
    assert best.mean_until(10.0) == pytest.approx((2 * 0.5 + 6 * 1.0) / 10)
    assert best.mean_until(3.0) == pytest.approx(0.5 / 3)
    assert best.mean_until(1.0) == 0.0
    assert [best.by(at_s) for at_s in (1.9, 2.0, 5.0)] == [0.0, 0.5, 1.0]


def test_a_draft_counts_from_its_own_instant_and_later_losses_do_not() -> None:
    # A draft at 3 s; the answer at 6 s is better; a later write made it worse, which nobody has to wait for.
    best = best_results([(1.0, 0.5, 0.0), (3.0, 1.0, 0.4), (6.0, 1.0, 0.8), (9.0, 1.0, 0.7)])
    assert best.by(3.0) == 0.4
    assert best.by(20.0) == 0.8
    # To answer after half of the sources: what was there at 1 s, and the 3 s that the answer takes.
    assert best.by(4.0) == pytest.approx(0.4)


@pytest.mark.parametrize("marks", [[], [(1.0, 1.0, 0.0)]])
def test_a_run_that_never_has_a_score_leaves_nothing_to_regret(marks: list[Any]) -> None:
    assert best_results(marks).by(100.0) == 0.0


def test_of_two_runs_the_better_one_counts_at_every_deadline() -> None:
    both = BestResults((2.0, 9.0), (0.5, 0.9)).or_else(BestResults((3.0, 5.0), (0.4, 0.7)))
    assert both == BestResults((2.0, 5.0, 9.0), (0.5, 0.7, 0.9))


def test_where_a_later_call_is_quicker_nobody_is_better_than_the_clairvoyant() -> None:
    """In a brownout two requests at once are both slow, and one that begins later is not."""
    ranking = rank_by_regret(
        {
            "documents": "handbook",
            "repeats": 8,
            "factors": {
                "alternative": "A",
                "policies": ["none", "hedge:4s"],
                "decision_timeout_s": 20,
                "latency_profile": "typical",
                "fault": "brownout=4@2-8",
            },
        }
    )
    assert (ranking.runs["regret"] >= 0).all()
    assert (ranking.runs["area_regret"] >= -1e-9).all()


# ---- the ranking


@pytest.fixture(scope="module")
def ranked() -> PolicyRanking:
    return rank_by_regret(
        {
            "documents": "handbook",
            "repeats": 6,
            "factors": {
                "alternative": "A",
                "policies": ["none", "hedge:4s"],
                "decision_timeout_s": [8, 20],
                "latency_profile": "typical",
                "fault": "hang@1:synthesis",
            },
        }
    )


def test_a_policy_that_mends_what_is_wrong_has_less_regret_and_says_what_it_cost(ranked: PolicyRanking) -> None:
    rows = {(row["decision_timeout_s"], row["policies"]): row for row in ranked.rows()}
    plain, hedged = rows[20.0, "none"], rows[20.0, "hedge:4s"]
    assert plain["regret"] > 0, "the first request of the synthesis hangs, and the clairvoyant makes two"
    assert hedged["regret"] == pytest.approx(0.0)
    assert hedged["difference"] == pytest.approx(plain["regret"] - hedged["regret"])
    assert hedged["more_tokens"] > 0
    in_order = ranked.table[ranked.table["decision_timeout_s"] == 20.0]
    assert in_order["policies"].tolist() == ["hedge:4s", "none"]
    assert (ranked.runs["regret"] >= -1e-9).all(), "nobody is better than the clairvoyant"
    assert (ranked.runs["area_regret"] >= -1e-9).all()


def test_the_regret_of_a_run_is_recomputed_from_its_score_and_the_probe(ranked: PolicyRanking) -> None:
    for row in ranked.runs.to_dict("records"):
        assert row["regret"] == pytest.approx(row["best_score"] - row["answer_score"])
        assert row["mean_score"] <= row["answer_score"] + 1e-9
        assert row["tokens"] > 0
        assert row["server_s"] > 0


def test_a_ranking_is_read_in_eighty_columns(ranked: PolicyRanking) -> None:
    lines = repr(ranked).splitlines()
    assert lines[0] == "8 s decision timeout"
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("hedge:4s ") for line in lines)
    assert json.loads(json.dumps(ranked.rows(), default=str))


def test_under_load_the_intervals_are_over_crowds() -> None:
    ranking = rank_load_by_regret(
        {
            "arrivals": (Poisson(0.4),),
            "alternatives": "A,A+hedge:6s",
            "decision_timeout_s": 8.0,
            "queries": 8,
            "replicates": 5,
            "slots": 4,
            "warm_up_s": 0.0,
            "horizon_factor": 1.5,
        }
    )
    assert set(ranking.table["policies"]) == {"none", "hedge:6s"}
    assert ranking.table["regret_interval"].map(lambda interval: interval.n).tolist() == [5, 5]
    assert ranking.sections()[0][0] == "0.4 queries a second"
    assert (ranking.runs["tokens"] > 0).all()


# ---- what cannot be ranked


def test_the_probe_meets_what_the_study_meets_with_every_call_twice_and_time_enough() -> None:
    study = StudyDesign.of(
        {
            "repeats": 3,
            "seed": 11,
            "factors": {"alternative": "A,E", "decision_timeout_s": [5, 10], "fault": ["none", "trickle"]},
        }
    )
    probe = probe_of(study)
    assert (probe.repeats, probe.seed, probe.documents) == (3, 11, study.documents)
    assert probe.factors.fault == study.factors.fault
    assert probe.factors.latency_profile == study.factors.latency_profile
    assert probe.factors.alternative == (f"A+{PROBE_POLICY}",)
    assert probe.factors.decision_timeout_s == (300.0,)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"factors": {"clock": "wall", "alternative": "A", "latency_profile": "fast"}}, "factors.clock: regret needs"),
        (
            {"graph": "graphs_agent:make", "inputs": ["x"], "factors": {"alternative": "A"}},
            "for the lab's own workloads",
        ),
    ],
)
def test_a_study_without_a_probe_is_refused(values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        rank_by_regret(values)
    assert complaint in str(refused.value)


def test_a_probe_of_other_runs_is_refused(ranked: PolicyRanking) -> None:
    study = dl.compare(alternatives="A", runs=2, documents="handbook")
    with pytest.raises(ConfigurationError, match="the probe has runs without policies=hedge"):
        Clairvoyant.of(study)
    probe = dl.compare(alternatives=f"A+{PROBE_POLICY}", runs=1, documents="handbook", decision_timeout_s=600)
    with pytest.raises(ConfigurationError, match="the probe has no run with workload=supervisor"):
        rank_policies(study, Clairvoyant.of(probe))
    short = dl.compare(alternatives=f"A+{PROBE_POLICY}", runs=1, documents="handbook", decision_timeout_s=0.5)
    with pytest.raises(ConfigurationError, match="1 of 1 runs of the probe were cut"):
        Clairvoyant.of(short)


def test_questions_without_gold_and_queries_without_a_probe_are_refused() -> None:
    queries = pd.DataFrame(
        {
            "scheduled_at_s": [1.0],
            "window_from_s": [0.0],
            "window_until_s": [9.0],
            "alternative": ["cooperative"],
            "alternative_options": ["{}"],
            "retries": ["budgeted:1"],
            "node_mode": ["sync"],
            "seed": [1],
            "answer_score": [math.nan],
        }
    )
    with pytest.raises(ConfigurationError, match="gold answers"):
        rank_under_load(queries, pd.DataFrame(), queries)
    with pytest.raises(ConfigurationError, match="no query with seed 1"):
        rank_under_load(queries.assign(answer_score=0.5), pd.DataFrame(), queries.assign(seed=2, mean_score=0.1))


def test_the_command_ranks_a_study_file_and_prints_rows_as_json(tmp_path: Any) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        'documents = "handbook"\nrepeats = 2\n[factors]\nalternative = "A"\npolicies = ["none", "hedge:2s"]\n'
        'decision_timeout_s = 20\nlatency_profile = "typical"\n',
        encoding="utf-8",
    )
    printed = CliRunner().invoke(app, ["policies", str(file)], env={"COLUMNS": "80"})
    assert printed.exit_code == 0, printed.output
    assert "regret" in printed.output
    rows = json.loads(CliRunner().invoke(app, ["policies", str(file), "--json"]).stdout)["ranking"]
    assert {row["policies"] for row in rows} == {"none", "hedge:2s"}


def test_the_figure_shows_one_condition_with_its_intervals(ranked: PolicyRanking) -> None:
    with pytest.raises(ConfigurationError, match="several conditions"):
        dl.plots.regret_frame(ranked)
    one = PolicyRanking(ranked.runs, ranked.table[ranked.table["decision_timeout_s"] == 20.0])
    drawn = dl.plots.regret_frame(one)
    assert drawn["policies"].tolist() == ["hedge:4s", "none"]
    assert ((drawn["low"] >= 0) & (drawn["low"] <= drawn["regret"]) & (drawn["regret"] <= drawn["high"])).all()
    axes = dl.plots.regret(one, ax=blank_axes(9.0, 3.0))
    assert [label.get_text().split()[0] for label in axes.get_yticklabels()] == ["hedge:4s", "none"]


def test_the_page_of_the_ranking_is_written_from_the_rows_that_are_kept() -> None:
    """(policies.md 8.) The page in docs is what its writer makes of data/policies."""
    root = Path(__file__).parents[1]
    writer = runpy.run_path(str(root / "data" / "derive_policies.py"))
    rows = {name: pd.read_csv(root / "data" / "policies" / f"{name}.csv") for name in writer["STUDIES"]}
    assert (root / "docs" / "which-policy.md").read_text(encoding="utf-8") == writer["page"](rows)
