"""Agents that are told how much time is left, lose their tools, or keep a draft (policies.md 1, 5).

Without a policy the first question takes 10.117 s: synthesis ends at 7.256, and validation at 8.966.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from often import often
from virtual_runs import ALL_ENDS_S, VirtualRuns

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.time_policies import share_left, time_left_line
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.scripted_model.conversation import Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.variation import UnderPressure
from docmind_lab.services.server import ServiceOptions
from docmind_lab.systems.system_catalogue import system_of_kind

SYNTHESIS_ENDS_S, TIGHT_S = 7.256, 9.0
SYNC_AND_ASYNC = ("A", "C:propagate", "E")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The role and the body of each request that reaches the model server."""
    seen: list[tuple[str, dict[str, Any]]] = []
    plan: Callable[..., Any] = OpenAIService.plan

    def noted(service: OpenAIService, request: Any) -> Any:
        seen.append((request.tag("role"), json.loads(request.body)))
        return plan(service, request)

    monkeypatch.setattr(OpenAIService, "plan", noted)
    return seen


def measured(virtual_runs: VirtualRuns, name: str, timeout_s: float = TIGHT_S, **services: Any) -> MeasuredRun:
    return virtual_runs.measure(name, timeout_s=timeout_s, **services)


def told(asked: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The line of each request, or nothing."""
    prompts = [str(body["messages"][0]["content"]) for _, body in asked]
    return [(re.findall(r"^Time left: .*$", prompt, re.MULTILINE) or [""])[0] for prompt in prompts]


def events(run: MeasuredRun, name: str) -> list[tuple[str, float]]:
    return [(each.role, each.at_s) for each in run.events if each.event == name]


# ---- the line


@pytest.mark.parametrize(
    ("left_s", "line", "share"),
    [(4.24, "Time left: 4.2 s of 20 s.", 0.21), (-1.0, "Time left: 0.0 s of 20 s.", 0.0)],
)
def test_a_line_says_how_much_is_left_and_is_read_again(left_s: float, line: str, share: float) -> None:
    assert time_left_line(left_s, 20.0) == line
    assert share_left(f"You are an agent.\n\n{line}") == pytest.approx(share)


@pytest.mark.parametrize("name", SYNC_AND_ASYNC)
def test_every_request_tells_its_model_the_seconds_that_are_left(
    virtual_runs: VirtualRuns, asked: list[tuple[str, dict[str, Any]]], name: str
) -> None:
    run = measured(virtual_runs, f"{name}+aware", 40.0)
    left_s = [float(line.split()[2]) for line in told(asked)]
    begun = sorted(call.started_at_s for call in run.calls if call.seen_from == "client" and call.kind == "llm")
    assert left_s == [pytest.approx(40 - at_s, abs=0.06) for at_s in begun]
    assert run.run.returned_at_s == pytest.approx(ALL_ENDS_S, abs=0.01), "with time enough it changes nothing"


@pytest.mark.parametrize("name", ["A", "A+wind_down"])
def test_without_the_policy_no_request_says_anything_of_time(
    virtual_runs: VirtualRuns, asked: list[tuple[str, dict[str, Any]]], name: str
) -> None:
    measured(virtual_runs, name)
    assert not any("time left" in json.dumps(body).lower() for _, body in asked)


# ---- what the simulated model makes of it


@pytest.mark.parametrize("name", SYNC_AND_ASYNC)
def test_a_hurrying_supervisor_leaves_out_validation_and_answers_in_time(virtual_runs: VirtualRuns, name: str) -> None:
    plain, aware = measured(virtual_runs, name), measured(virtual_runs, f"{name}+aware")
    assert plain.run.outcome == "partial"
    assert aware.run.outcome == "answered"
    assert SYNTHESIS_ENDS_S < aware.run.returned_at_s < TIGHT_S
    assert "validation" not in {call.role for call in aware.calls}
    assert aware.run.answer_score == plain.run.answer_score > 0


def test_a_model_that_ignores_the_line_does_what_it_did(virtual_runs: VirtualRuns) -> None:
    plain, ignored = measured(virtual_runs, "A"), measured(virtual_runs, "A+aware", model_under_pressure="ignores")
    assert ignored.run.outcome == plain.run.outcome
    assert [call.call_id for call in ignored.calls] == [call.call_id for call in plain.calls]


def test_a_model_that_panics_answers_with_its_first_statement_alone() -> None:
    cited = Reply("One. [a] Two. [b] Three. [c]")
    little = Conversation(({"role": "system", "content": "Answer.\n\nTime left: 2.0 s of 20 s."},))
    much = Conversation(({"role": "system", "content": "Answer.\n\nTime left: 12.0 s of 20 s."},))
    panics, hurries = UnderPressure.parse("panics"), UnderPressure.parse("hurries")
    assert panics.reply(cited, little, "synthesis").text == "One. [a]"
    assert panics.reply(cited, much, "synthesis") == hurries.reply(cited, little, "synthesis") == cited
    assert UnderPressure.parse("panics:0.7").reply(cited, much, "research_findings").text == "One. [a]"


HURRIED = {"role": "system", "content": "Time left: 1.0 s of 20 s."}
ASKS = {"role": "user", "content": "When does the quoll hunt?"}
RETURNED = {"role": "tool", "tool_call_id": "1", "name": "atlas", "content": "The quoll hunts at night. It is spotted."}


@pytest.mark.parametrize(
    ("messages", "options", "calls"),
    [
        ((HURRIED, ASKS, RETURNED), {}, []),
        # Without a result it has nothing to answer from, and a tool that must be called is.
        ((HURRIED, ASKS), {}, ["check"]),
        ((HURRIED, ASKS, RETURNED), {"tool_choice": "required"}, ["check"]),
        ((HURRIED, ASKS, RETURNED), {"tools": {"check": {}, "final_answer": {}}}, ["final_answer"]),
        ((ASKS, RETURNED), {}, ["check"]),
    ],
)
def test_any_other_agent_in_a_hurry_calls_no_further_tool(
    messages: Any, options: dict[str, Any], calls: list[str]
) -> None:
    conversation = Conversation(messages, **({"tools": {"check": {}}} | options))
    calm = Reply(tool_calls=(ToolCall("check", {}),))
    reply = UnderPressure().reply(calm, conversation, "assistant")
    assert [call.name for call in reply.tool_calls] == calls
    assert bool(reply.text) == (not calls)


@pytest.mark.parametrize("text", ["faints", "hurries:2", "panics:x"])
def test_a_behaviour_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match="model_under_pressure"):
        dl.compare(decision_timeout_s=2.0, world=dl.World(model=dl.ScriptedModel(under_pressure=text)), runs=1)


def test_a_service_in_another_process_does_the_same_under_pressure() -> None:
    options = ServiceOptions(model_under_pressure="panics:0.4")
    assert ServiceOptions.from_json(options.as_json()) == options
    assert options.door().llm.under_pressure == UnderPressure("panics", 0.4)  # type: ignore[attr-defined]


# ---- wind-down


@pytest.mark.parametrize("name", SYNC_AND_ASYNC)
def test_at_a_share_of_the_time_the_supervisor_loses_its_tools_and_answers(
    virtual_runs: VirtualRuns, asked: list[tuple[str, dict[str, Any]]], name: str
) -> None:
    run = measured(virtual_runs, f"{name}+wind_down:0.4", 12.0)
    tools = [bool(body.get("tools")) for role, body in asked if role == "supervisor"]
    assert tools == [*[True] * (len(tools) - 1), False]
    assert events(run, "wound_down") == [("supervisor", pytest.approx(SYNTHESIS_ENDS_S, abs=0.02))]
    assert run.run.outcome == "answered"
    assert run.run.answer_score > 0
    assert SYNTHESIS_ENDS_S < run.run.returned_at_s < 12.0
    assert "validation" not in {call.role for call in run.calls}


def test_a_supervisor_without_tools_answers_from_the_documents_there_are(virtual_runs: VirtualRuns) -> None:
    """Synthesis would begin at 4.072 s; the supervisor answers in its place."""
    run = measured(virtual_runs, "A+wind_down:0.75", 12.0)
    assert "synthesis" not in {call.role for call in run.calls}
    assert run.run.outcome == "answered"
    assert run.run.answer_score > 0


def test_roles_that_answer_by_their_tool_keep_it(
    virtual_runs: VirtualRuns, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    run = measured(virtual_runs, "A+wind_down:0.1")  # below 0.9 s, when validation is over
    assert run.run.outcome == "partial"
    assert all(body.get("tools") for role, body in asked if role in ("router", "validation"))


@pytest.mark.full
def test_in_research_no_further_query_begins_and_the_findings_are_written() -> None:
    study = dl.compare(dl.research(), alternatives="A,A+wind_down:0.5", runs=4)
    sources = study.table("sources").merge(study.runs[["run_id", "alternative_options"]], on="run_id")
    reasons = sources.groupby("alternative_options", observed=True)["exit_reason"].agg(set)
    assert "wound_down" in reasons['{"policies": "wind_down:0.5"}']
    assert "wound_down" not in reasons["{}"]
    by_arm = study.runs.groupby("alternative_options", observed=True)
    answered = by_arm["outcome"].agg(lambda outcomes: (outcomes == "answered").sum())
    assert answered['{"policies": "wind_down:0.5"}'] > answered["{}"]
    late = study.events[study.events["event"] == "wound_down"]
    assert len(late)
    assert (late["at_s"] >= 0.5 * study.runs["decision_timeout_s"].iloc[0] - 1e-6).all()


# ---- drafts


# The caller of B that has waited in vain gets nothing, whatever there is.
@pytest.mark.parametrize("name", often(["A", "C:propagate", "D:propagate", "E", "F:propagate"], "A"))
def test_a_research_that_is_cut_returns_its_draft(name: str) -> None:
    plain, anytime = (dl.compare(dl.research(), 25.0, alternatives=each, runs=2) for each in (name, f"{name}+anytime"))
    assert set(plain.runs["outcome"].astype(str)) <= {"partial", "timed_out"}
    assert plain.runs["answer_score"].max() == 0.0
    assert anytime.runs["answer_score"].max() > 0.0
    assert anytime.runs["mean_score"].max() > 0.0, "quality over time, not only at the end"
    drafts = anytime.calls[(anytime.calls["role"] == "synthesis") & (anytime.calls["seen_from"] == "server")]
    assert len(drafts), "a draft is a model call, and is paid for"
    assert not (anytime.runs["outcome"] == "answered").any(), "a draft is not presented as the answer"


# ---- where a policy would change nothing


@pytest.mark.parametrize(
    ("workload", "policy", "reason"),
    [
        ("supervisor", "anytime", "the answer of synthesis stands in the state before it is validated"),
        ("staged", "aware", "the model of this workload does nothing else when it is told of the time left"),
        ("peers", "wind_down", "no agent of this workload could answer sooner without its tools"),
        ("hops", "aware", "policies are for model calls, and it makes none"),
    ],
)
def test_a_policy_that_would_change_nothing_is_refused_by_name(workload: str, policy: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        dl.compare(system_of_kind(workload), alternatives=f"A+{policy}", runs=1)
