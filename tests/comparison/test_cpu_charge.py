"""CPU time charged to virtual time: each request costs what is given, or what was measured."""

from __future__ import annotations

import itertools
import time

import pytest

from docmind_lab.analysis.study import Study
from docmind_lab.core.clock import parse_charge
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.comparison import compare
from docmind_lab.experiments.sweeps.design import StudyDesign


def studied(**options: object) -> Study:
    return compare(600.0, 2, alternatives="A,C", profile="typical", documents="handbook", **options)  # type: ignore[arg-type]


def test_a_given_charge_makes_an_uncut_run_later_by_its_requests_one_after_the_other() -> None:
    free, charged, again = studied(), studied(cpu_charge=0.5), studied(cpu_charge=0.5)
    later_s = charged.runs["returned_at_s"] - free.runs["returned_at_s"]
    requests = free.calls.groupby("run_id").size().to_numpy()
    assert (free.runs["outcome"] == "answered").all()
    # One interpreter computes for one request at a time, also where branches run side by side; what it computes while
    # another branch waits for its server delays nobody.
    assert (later_s > 0.5 * 4).all()
    assert (later_s <= 0.5 * requests + 1e-6).all()
    assert charged.runs.equals(again.runs), "a given charge leaves tables the same every time"
    assert charged.manifest["design"]["cpu_charge"] == 0.5
    assert "cpu_charge" not in free.manifest["design"]
    assert charged.manifest["study_id"] != free.manifest["study_id"]


def test_a_measured_charge_is_the_cpu_time_since_the_request_before(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    # Each look at the CPU clock is 0.25 s after the one before.
    monkeypatch.setattr(time, "process_time", lambda: 0.25 * next(ticks))
    later_s = (studied(cpu_charge="measured").runs["returned_at_s"] - studied().runs["returned_at_s"]).min()
    assert later_s >= 0.25 * 4


def test_a_charge_is_for_virtual_time_and_a_number_of_seconds() -> None:
    with pytest.raises(ConfigurationError, match="cpu_charge is for virtual time"):
        studied(cpu_charge=0.1, clock="wall")
    for wrong in (-1.0, float("nan"), True, "much"):
        with pytest.raises(ConfigurationError, match="cpu_charge must be 0 or more"):
            studied(cpu_charge=wrong)
    assert (parse_charge("measured"), parse_charge("0.25")) == ("measured", 0.25)
    with pytest.raises(ConfigurationError, match="not 'much'"):
        parse_charge("much")


def test_a_study_charges_each_of_its_combinations_in_virtual_time() -> None:
    factors = {"clock": ["virtual", "wall"], "alternative": "A"}
    design = StudyDesign.of({"cpu_charge": 0.2, "factors": factors, "documents": "handbook"})
    charges = {item.comparison.clock: item.comparison.cpu_charge for item in design.plan.combinations}
    assert charges == {"virtual": 0.2, "wall": 0.0}
    assert design.to_dict()["cpu_charge"] == 0.2
    assert "cpu_charge" not in StudyDesign.of({}).to_dict()
    with pytest.raises(ConfigurationError, match="cpu_charge"):
        StudyDesign.of({"cpu_charge": -0.2})
