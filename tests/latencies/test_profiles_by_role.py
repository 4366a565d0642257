"""Profiles of single roles: how they are written, what is drawn from them, and where they travel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chains import chain
from flat_compare import compare_by
from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.services import server
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile, latency_profile
from docmind_lab.statistics.latency.quantiles import QuantileTable
from docmind_lab.views.cli.servers import serve


def written_and_judged() -> Any:
    """A graph of two nodes, each a call to the model."""
    model = ChatOpenAI(model="any", api_key="any")
    nodes = {name: lambda state: {"messages": [model.invoke(state["messages"])]} for name in ("write", "judge")}
    return chain(MessagesState, **nodes).compile()


def constant(name: str, seconds: float) -> LatencyProfile:
    first, per_token = QuantileTable.constant(seconds), QuantileTable.constant(0.0)
    return LatencyProfile(name, "Always the same.", "Made for a test.", first, per_token, first)


def test_a_role_draws_from_its_own_profile_and_the_others_from_the_rest() -> None:
    profile = latency_profile({"*": constant("quick", 1.0), "judge": constant("slow", 9.0)})
    assert profile.draw_llm(DrawKey(7, "judge", "1")).first_token_s == 9.0
    assert profile.draw_retrieval(DrawKey(7, "judge", "1")) == 9.0
    assert profile.draw_llm(DrawKey(7, "write", "1")).first_token_s == 1.0
    assert (profile.name, profile.level) == ("quick", "quick,judge=slow")
    assert LatencyProfile.from_dict(profile.to_dict()) == profile
    assert profile.scaled(0.5).draw_llm(DrawKey(7, "judge", "1")).first_token_s == 4.5


@pytest.mark.parametrize(
    ("written", "level"),
    [
        ("typical,judge=fast", "typical,judge=fast"),
        (["judge=fast/2", "typical/10"], "typical/10,judge=fast/2"),
        ("judge=fast", "heavy_tail,judge=fast"),
        ("typical?correlation=0.5,judge=fast?slowdown=0.1", "typical?correlation=0.5,judge=fast?slowdown=0.1"),
        ({"judge": "fast"}, "heavy_tail,judge=fast"),
    ],
)
def test_profiles_by_role_are_written_in_one_way_everywhere(written: object, level: str) -> None:
    assert latency_profile(written, "heavy_tail").level == level  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("typical,fast", "every role has two, typical and fast"),
        ("judge=fast,judge=typical", "role judge has two"),
        ("typical,judge=quick", "no latency profile is named 'quick'"),
        ({"judge": "typical,write=fast"}, "a role has one profile"),
    ],
)
def test_what_cannot_be_read_is_named(written: object, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        latency_profile(written)  # type: ignore[arg-type]


def test_a_graphs_nodes_have_profiles_of_their_own_in_compare() -> None:
    inputs = [{"messages": [("user", "Write about tides.")]}]
    asked = {"graph": written_and_judged(), "inputs": inputs, "runs": 2, "alternatives": "unguarded"}
    profile = {"*": constant("quick", 1.0), "judge": constant("slow", 9.0)}
    study = compare_by(**asked, decision_timeout_s=20, latencies=profile, workers=1)  # type: ignore[arg-type]
    assert set(study.runs["latency_profile"]) == {"quick,judge=slow"}
    calls = study.calls[(study.calls["seen_from"] == "server") & (study.calls["kind"] == "llm")]
    lasted = (calls["ended_at_s"] - calls["started_at_s"]).groupby(calls["role"].astype("str")).max()
    assert lasted.to_dict() == {"judge": pytest.approx(9.0), "write": pytest.approx(1.0)}
    assert set(study.manifest["design"]["latency_profile"]["of_roles"]) == {"judge"}
    plain = compare_by(**asked, decision_timeout_s=20, latencies=constant("quick", 1.0), workers=1)  # type: ignore[arg-type]
    assert "of_roles" not in plain.manifest["design"]["latency_profile"], "ids of studies without them stay"
    assert plain.manifest["study_id"] != study.manifest["study_id"]
    with pytest.raises(ConfigurationError, match=r"no role is 'jugde'; name one of write, judge"):
        compare_by(**asked, decision_timeout_s=20, latencies={"jugde": "fast"})  # type: ignore[arg-type]


def file_of(profile: LatencyProfile, folder: Path) -> str:
    file = folder / f"{profile.name}.json"
    file.write_text(json.dumps(profile.to_dict()))
    return str(file)


def test_serve_gives_a_role_its_own_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[ServiceOptions] = []
    monkeypatch.setattr(server, "serve", lambda options, port: served.append(options))
    serve(latencies=["fast", f"judge={file_of(constant('slow', 9.0), tmp_path)}"])
    (options,) = served
    assert options.profile.draw_llm(DrawKey(7, "judge", "1")).first_token_s == 9.0
    assert options.profile.draw_llm(DrawKey(7, "write", "1")).first_token_s < 1.0


def test_a_study_file_names_profiles_by_role_as_text_or_as_a_table() -> None:
    table = {"*": "typical", "synthesis": "fast"}
    design = StudyDesign(factors={"latency_profile": ["typical,synthesis=fast", table], "alternative": "A"}, repeats=1)  # type: ignore[arg-type]
    assert len(design.plan.combinations) == 1, "they are one level"
    assert design.plan.combinations[0].profile.level == "typical,synthesis=fast"
    unknown = StudyDesign(factors={"latency_profile": "typical,judge=fast", "alternative": "A"}, repeats=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="no role is 'judge'; name one of supervisor"):
        _ = unknown.plan
