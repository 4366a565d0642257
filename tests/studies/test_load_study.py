"""`run_load` from its arguments to its tables; what is computed is small, and once."""

import math

import pytest
from typer.testing import CliRunner

from benchmarks import load
from docmind_lab.core.errors import ConfigurationError, SimulationStalled
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import CellResult
from docmind_lab.experiments.load import LoadStudy, Poisson, load_options, run_load
from docmind_lab.experiments.load import load_run as run
from docmind_lab.views.cli.app import app

SMALL = {"alternatives": "B,C", "queries": 3, "replicates": 1, "slots": 1, "warm_up_s": 0.0, "decision_timeout_s": 6.0}


def design(**changes):
    seen = []
    given = {"arrivals": [0.1], **SMALL, **changes}

    def instead(made, *others, **options):
        seen.append(made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "offer_load", instead)
        patch.setattr(run, "workers_for", lambda *_: None)
        run_load(given.pop("arrivals"), **given)
    return seen[0]


TABLE = """
    [load]
    arrivals = "constant"
    rates_per_s = [0.2, 0.3]
    alternatives = ["B", "C"]
    queries = 3
    replicates = 1
    slots = 1
    warm_up_s = 0.0
    decision_timeout_s = 6.0
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Two loads under B and C by the command: the study, its folder and what was printed."""
    folder = tmp_path_factory.mktemp("load")
    (folder / "study.toml").write_text(TABLE, encoding="utf-8")
    done = CliRunner().invoke(app, ["sweep", str(folder / "study.toml"), "--out", str(folder / "study")])
    assert done.exit_code == 0, done.output
    return LoadStudy.load(folder / "study"), folder / "study", done.output


def test_every_load_has_every_alternative_with_the_same_queries(small):
    queries = small[0].queries
    assert queries.groupby(["offered_per_s", "alternative"], observed=True).size().to_dict() == {
        (rate, name): 3 for rate in (0.2, 0.3) for name in ("async_cancellation", "hard_timeout")
    }
    met = queries.groupby("query")[["seed", "question_id"]].nunique()
    assert (met == 1).all().all(), "the same draws at every load, under every alternative"
    by_load = queries.groupby(["offered_per_s", "query"])["scheduled_at_s"].nunique()
    assert (by_load == 1).all()


def test_the_folder_holds_the_study_and_its_figures(small):
    study, folder, printed = small
    assert "queries.parquet, servings.parquet, goodput.png, abandoned.png, manifest.json" in printed
    assert study.text() in printed
    assert study.manifest["complete"]
    assert study.manifest["design"]["arrivals"][0] == {"kind": "constant", "rate_per_s": 0.2}
    with pytest.raises(ConfigurationError, match="holds a study already"):
        run_load([0.1], **SMALL, out=folder)


def test_the_summary_has_a_row_for_each_load_and_arm(small):
    summary = small[0].summary()
    assert summary["offered_per_s"].tolist() == [0.2, 0.2, 0.3, 0.3]
    assert summary["arm"].astype("str").tolist() == 2 * ["B  hard timeout", "C  async cancellation"]
    assert summary["busy_share"].between(0.0, 1.0).all()
    assert (summary["abandoned_share"] <= summary["busy_share"]).all()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"arrivals": []}, "arrivals is empty"),
        ({"arrivals": [0.1, 0.1]}, "twice"),
        ({"arrivals": [-1.0]}, "rate_per_s"),
        ({"server": "nginx"}, "server behaviour must be one of stops, goes-on"),
        ({"queries": 1}, "queries"),
        ({"queries": 10_000}, "queries"),
        ({"arrivals": [2.0]}, "none is counted"),
        # One crowd of two has a window in which no query arrives.
        ({"arrivals": [1.2], "queries": 80, "replicates": 2, "decision_timeout_s": 10.0, "warm_up_s": None}, "none is"),
        ({"warm_up_s": 60.0}, "warm-up"),
        ({"warm_up_s": -1.0}, "warm_up_s"),
        ({"replicates": 0}, "replicates"),
        ({"callers": 0}, "callers"),
        ({"slots": 0}, "slots"),
        ({"horizon_factor": 1.0}, "horizon_factor"),
        ({"decision_timeout_s": 0.0}, "decision timeout"),
        ({"alternatives": "Z"}, "Z"),
        ({"profile": "slow"}, "slow"),
        ({"settings": Settings(llm={"base_url": "http://127.0.0.1:8000/v1"})}, r"llm\.base_url"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(changes, named):
    with pytest.raises(ConfigurationError, match=named):
        design(**changes)


def test_what_is_not_known_is_a_dash(small):
    study = small[0]
    unlimited = LoadStudy(study.queries.assign(slots=math.nan), study.servings.iloc[:0])
    assert "nan" not in unlimited.text()
    assert "–" in unlimited.text()


def test_counting_begins_at_the_horizon_unless_told_otherwise():
    made = design(warm_up_s=None, queries=20)
    assert made.horizon_s == 30.0
    cell, _ = made.cells()
    last_s = made.queries_of(cell)[-1].scheduled_at_s
    assert made.window_s(last_s) == (30.0, last_s - 6.0)


def test_a_study_is_named_by_its_design():
    assert design().study_id == design().study_id
    changes = ({}, {"slots": 2}, {"callers": 3}, {"server": "goes-on"}, {"server": "llama-cpp-2026.10"})
    assert len({design(**each).study_id for each in changes}) == len(changes)


def test_a_crowd_that_is_lost_twice_ends_the_study(monkeypatch):
    def lost(design, settings, cell, attempt):
        return CellResult(cell.id, stalled=f"of crowd {cell.id}: a thread waits")

    monkeypatch.setattr(run, "run_load_cell", lost)
    with pytest.raises(SimulationStalled, match="of crowd 1-0-0: a thread waits"):
        run_load([0.1, 0.15], **SMALL)


def test_interrupted_it_keeps_what_was_done_and_returns_it(tmp_path):
    seen = []

    def interrupt(done, of):
        seen.append((done, of))
        if done == 6:
            raise KeyboardInterrupt

    part = run_load([0.1, 0.15], **SMALL, out=tmp_path / "study", progress=interrupt)
    assert repr(part).startswith("Interrupted, with 2 of 4 crowds. ")
    kept = LoadStudy.load(tmp_path / "study")
    assert seen == [(3, 12), (6, 12)]
    assert len(kept.queries) == 6
    assert not kept.manifest["complete"]


# ---- a table of a study file


def test_a_load_table_gives_the_arguments_of_run_load():
    options = load_options({"rates_per_s": [1, 2.5], "queries": 300, "alternatives": ["A", "B:naive"], "slots": 4})
    assert options["arrivals"] == (Poisson(1.0), Poisson(2.5))
    made = design(**{**options, "warm_up_s": 10.0, "decision_timeout_s": 6.0})
    assert [alternative.name for alternative in made.alternatives] == ["cooperative", "hard_timeout"]
    assert (made.queries, made.profile.slots, made.callers) == (300, 4, None)


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({}, r"load\.rates_per_s: Field required"),
        ({"rates_per_s": [0.5], "rate": 1}, r"load\.rate"),
        ({"rates_per_s": ["fast"]}, r"load\.rates_per_s"),
        ({"rates_per_s": [0.5], "queries": 2.5}, r"load\.queries"),
        ({"rates_per_s": [0.5], "clock": "wall"}, r"load\.clock: there is no such field"),
        ({"arrivals": "trace", "rates_per_s": [0.5]}, r"load\.arrivals: Input should be 'poisson' or 'constant'"),
        ({"rates_per_s": []}, "arrivals is empty"),
        ({"rates_per_s": [0.0]}, "rate_per_s"),
        ({"rates_per_s": [0.5], "traces": "traces.jsonl"}, r"load\.traces: there is no such field"),
    ],
)
def test_a_load_table_that_does_not_fit_is_refused_by_field(table, named):
    with pytest.raises(ConfigurationError, match=named):
        design(**load_options(table))


# ---- the benchmark


@pytest.mark.full
def test_the_benchmark_runs_at_a_small_scale():
    found = {figure.what: figure.value for figure in load.run(load.QUICK, workers=1)}
    assert found["queries"] == 3 * load.QUICK.queries
    assert found["CPU time of a query"] > 0
