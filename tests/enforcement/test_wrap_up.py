"""The policy `wrap_up`: what it changes at the seam, for tools and in production (runway.md 1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chains import chain
from chat_replies import at_once
from dialect_clients import CLIENTS, Asked
from held_graphs import Notes
from langchain.agents import create_agent
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph_supervisor.handoff import create_forward_message_tool
from limited_clients import ASYNC, BLOCKING, OFTEN, Ask, asking, with_openai
from manual_clock import ManualClock
from often import often
from own_runs import simulated
from script_modules import load_script
from stub_server import StubServer

import docmind_lab as dl
from docmind_lab.alternatives.held_tools import refusal
from docmind_lab.core.deadlines import Deadline, PropagationPolicy, policy_scope
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.holds import Hold, hold_scope
from docmind_lab.core.time_policies import ANSWER_NOW, TimePolicies
from docmind_lab.network.wrapping_up import ToolUnderWay, seconds_of_tool, wrap_up_body

# Libraries warn of what they will remove, which is none of ours.
pytestmark = pytest.mark.filterwarnings("default")
# Of 20 s: the reserve has begun when the first node does, and not before the call.
AT_ONCE = dl.WrapUp(19.9999)
LATER = dl.WrapUp(5)
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "graphs"
LINE = f"Time left: 8.0 s of 20 s. {ANSWER_NOW}"
TOOLS = [{"type": "function", "function": {"name": "look_up"}}]
QUESTION = {"role": "user", "content": "?"}


def told(path: str, body: Any, wrap_up: dl.WrapUp = LATER, left_s: float = 8.0, **headers: str) -> tuple[Any, Hold]:
    """The JSON body of a request sent with so many seconds left of 20, None for its own; and what was noted."""
    policy = PropagationPolicy(policies=TimePolicies(wrap_up=wrap_up))
    clock = ManualClock()
    hold = Hold(Deadline(clock.now() + left_s, 20.0, clock), policy)
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    with hold_scope(hold), policy_scope(policy):
        sent = wrap_up_body("host", path, raw, lambda: content)
    return None if sent is None else json.loads(sent), hold


RESERVE = dl.WrapUp(8)
CHAT, RESPONSES, MESSAGES, OLLAMA = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"
GEMINI = "/v1beta/models/gemini-3:generateContent"
HAND_OVERS = [{"type": "function", "function": {"name": name}} for name in ("transfer_to_a", "forward_message")]
BRIEF, BRIEF_TOLD = ({"role": "system", "content": text} for text in ("Be brief.", f"Be brief.\n\n{LINE}"))
NONE = {"functionCallingConfig": {"mode": "NONE"}}
DECLARED = [{"functionDeclarations": [{"name": "look_up"}]}]


@pytest.mark.parametrize(
    ("path", "body", "changes"),
    [
        (CHAT, {"messages": [QUESTION]}, {"messages": [{"role": "system", "content": LINE}, QUESTION]}),
        (
            CHAT,
            {"messages": [{"role": "developer", "content": "Be brief."}, QUESTION], "tools": TOOLS, "seed": 1},
            {
                "messages": [{"role": "developer", "content": f"Be brief.\n\n{LINE}"}, QUESTION],
                "tool_choice": "none",
            },
        ),
        (
            CHAT,
            {"messages": [{"role": "system", "content": [{"type": "text", "text": "A"}]}], "tools": []},
            {"messages": [{"role": "system", "content": [{"type": "text", "text": t} for t in ("A", LINE)]}]},
        ),
        (RESPONSES, {"input": "?"}, {"instructions": LINE}),
        (
            RESPONSES,
            {"input": "?", "instructions": "A", "tools": TOOLS, "tool_choice": "auto"},
            {"instructions": f"A\n\n{LINE}", "tool_choice": "none"},
        ),
        (MESSAGES, {"messages": [QUESTION]}, {"system": LINE}),
        (
            MESSAGES,
            {"messages": [QUESTION], "system": "A", "tools": TOOLS},
            {"system": f"A\n\n{LINE}", "tool_choice": {"type": "none"}},
        ),
        (
            MESSAGES,
            {"messages": [QUESTION], "system": [{"type": "text", "text": "A", "cache_control": {}}]},
            {"system": [{"type": "text", "text": "A", "cache_control": {}}, {"type": "text", "text": LINE}]},
        ),
        (GEMINI, {"contents": [{}]}, {"systemInstruction": {"parts": [{"text": LINE}]}}),
        (
            GEMINI,
            {"contents": [{}], "system_instruction": {"parts": [{"text": "A"}]}, "tools": DECLARED},
            {"system_instruction": {"parts": [{"text": "A"}, {"text": LINE}]}, "toolConfig": NONE},
        ),
        (
            GEMINI,
            {"contents": [{}], "tools": [{"googleSearch": {}}]},
            {"systemInstruction": {"parts": [{"text": LINE}]}},
        ),
        # A supervisor can only answer by handing over.
        (
            CHAT,
            {"messages": [QUESTION], "tools": HAND_OVERS},
            {"messages": [{"role": "system", "content": LINE}, QUESTION]},
        ),
        (MESSAGES, {"messages": [QUESTION], "tools": [{"name": "transfer_to_a"}]}, {"system": LINE}),
        (
            GEMINI,
            {"contents": [{}], "tools": [{"functionDeclarations": [{"name": "transfer_to_a"}]}]},
            {"systemInstruction": {"parts": [{"text": LINE}]}},
        ),
        (OLLAMA, {"messages": [QUESTION]}, {"messages": [QUESTION, {"role": "system", "content": LINE}]}),
        # It cannot forbid tools, and is offered none.
        (OLLAMA, {"messages": [BRIEF], "tools": TOOLS}, {"messages": [BRIEF_TOLD], "tools": None}),
        (
            CHAT,
            {"messages": [BRIEF], "tools": TOOLS, "parallel_tool_calls": False},
            {"messages": [BRIEF_TOLD], "tool_choice": "none", "parallel_tool_calls": None},
        ),
        # One that demands a tool keeps it, since that is how it is answered.
        *(
            (CHAT, {"messages": [BRIEF], "tools": TOOLS, "tool_choice": choice}, {"messages": [BRIEF_TOLD]})
            for choice in ("required", {"type": "function", "function": {}})
        ),
        (
            RESPONSES,
            {"input": "?", "tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "required"}},
            {"instructions": LINE},
        ),
        (MESSAGES, {"messages": [QUESTION], "tools": TOOLS, "tool_choice": {"type": "any"}}, {"system": LINE}),
        (
            GEMINI,
            {"contents": [{}], "tools": DECLARED, "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            {"systemInstruction": {"parts": [{"text": LINE}]}},
        ),
    ],
)
def test_each_dialect_gets_the_line_where_it_takes_it_and_nothing_else_changes(
    path: str, body: dict[str, Any], changes: dict[str, Any]
) -> None:
    sent, hold = told(path, body, RESERVE)
    assert sent == {name: value for name, value in {**body, **changes}.items() if value is not None}
    assert [(note.what, note.of, note.line) for note in hold.wrap_ups] == [("told", "host", LINE)]


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (CHAT, b"no JSON", {}),
        (CHAT, None, {}),
        (CHAT, ["no", "object"], {}),
        (CHAT, {"messages": "?"}, {}),
        ("/v1/completions", {"prompt": "?"}, {}),
        ("/model/m/converse", {"messages": [QUESTION]}, {}),
        (MESSAGES, {"messages": [QUESTION]}, {"authorization": "AWS4-HMAC-SHA256 Credential=k"}),
        (CHAT, {"messages": [QUESTION]}, {"content_encoding": "gzip"}),
        (RESPONSES, {"input": "?", "prompt": {"id": "p"}}, {}),
        (GEMINI, {"contents": [{}], "cachedContent": "c"}, {}),
        ("/v1beta/models/gemma-3:generateContent", {"contents": [{}]}, {}),
    ],
)
def test_a_request_that_cannot_be_told_goes_out_as_it_is_and_is_noted(path: str, body: Any, headers: Any) -> None:
    sent, hold = told(path, body, RESERVE, **headers)
    assert sent is None
    assert [(note.what, note.of) for note in hold.wrap_ups] == [("untold", "host")]


@pytest.mark.parametrize(
    ("path", "left_s"), [(CHAT, 8.001), (CHAT, 0.0), ("/v1/embeddings", 1.0), ("/search", 1.0)], ids=str
)
def test_nothing_is_changed_before_the_reserve_after_the_deadline_and_of_other_requests(
    path: str, left_s: float
) -> None:
    sent, hold = told(path, {"messages": [QUESTION]}, RESERVE, left_s)
    assert (sent, hold.wrap_ups) == (None, [])


def test_a_silent_policy_only_stops_tools_and_one_that_keeps_them_only_tells() -> None:
    body = {"messages": [QUESTION], "tools": TOOLS}
    assert told(CHAT, body, dl.WrapUp(8, tell="nothing"))[0] == {**body, "tool_choice": "none"}
    assert "tool_choice" not in told(CHAT, body, dl.WrapUp(8, stop_tools=False))[0]


# ---- on a socket, and in virtual time


@pytest.mark.wall
@pytest.mark.parametrize("ask", often([*BLOCKING, *ASYNC], *OFTEN))
def test_before_the_reserve_each_client_sends_the_same_bytes_and_in_it_the_line(
    ask: Ask, stub: Callable[..., StubServer]
) -> None:
    server = stub(at_once)
    graph = asking(ask, server.url)
    for wrap_up in (None, LATER, AT_ONCE):
        # The stub answers as OpenAI does; a client of another may not understand it, which is after it was asked.
        result = dl.enforce(graph, 20, "E", wrap_up=wrap_up).invoke({"path": ""})
        assert (result.wrapped_up is None) == (wrap_up is not AT_ONCE)
    plain, later, at_the_end = server.requests
    assert later == plain
    assert ANSWER_NOW in at_the_end.body.decode()
    assert int(at_the_end.headers.pop("content-length")) == len(at_the_end.body)
    plain.headers.pop("content-length")
    assert at_the_end.headers == plain.headers


@pytest.mark.parametrize("dialect", CLIENTS)
def test_in_each_dialect_the_simulated_model_answers_without_its_tool(dialect: str) -> None:
    said = []

    def ask(state: Notes) -> Notes:
        said.append(CLIENTS[dialect].sync("http://localhost:11434", Asked(has_tool=True)))
        return {}

    graph = chain(Notes, ask=ask).compile()
    simulated(graph, alternatives="A", given={"path": ""})
    runs = simulated(graph, alternatives="A+wrap_up:19.999s", given={"path": ""}, decision_timeout_s=19.999)
    (plain, at_the_end) = said
    assert plain.calls
    assert not at_the_end.calls
    assert at_the_end.text
    assert whats(runs) == [["told"]]


# ---- tools


@tool
def look_up(query: str) -> str:
    """Look something up."""
    import httpx

    return httpx.post("https://api.tavily.com/search", json={"query": query}, timeout=None).text


@tool
async def look_up_async(query: str) -> str:
    """Look something up."""
    import httpx

    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.post("https://api.tavily.com/search", json={"query": query})).text


def agent(*tools: Any, url: str = "http://model.example/v1", **options: Any) -> Any:
    model = ChatOpenAI(model="m", base_url=url, api_key="k", max_retries=0)  # type: ignore[arg-type]
    return create_agent(model, list(tools) or [look_up], **options)


def whats(runs: Any) -> list[list[str]]:
    """What each run did to wrap up, in its order."""
    return [[e.detail["what"] for e in run.events if e.event == "wrapped_up"] for run in runs]


@pytest.mark.parametrize(("arm", "used"), [("A", look_up), ("E", look_up_async)])
def test_a_tool_that_is_to_begin_in_the_reserve_is_refused_and_the_model_answers(arm: str, used: BaseTool) -> None:
    # The reserve begins while the model is asked for the first time, and calls the tool.
    runs = simulated(agent(used), alternatives=f"{arm}+wrap_up:19.9s")
    assert whats(runs) == [["refused", "told"]]
    assert [run.run.outcome for run in runs] == ["answered"]
    assert not [e for e in runs[0].events if e.event == "tool_started"]


@pytest.mark.parametrize(("arm", "used"), [("A", look_up), ("E", look_up_async), ("E", look_up)])
def test_a_request_of_a_tool_ends_where_the_reserve_begins_with_its_clients_timeout(arm: str, used: BaseTool) -> None:
    arms = f"{arm},{arm}+wrap_up:9s"
    plain, wrapped = simulated(agent(used), alternatives=arms, faults="hang:tools", decision_timeout_s=30)
    assert (plain.run.outcome, wrapped.run.outcome) == ("partial", "answered")
    cut = [call for call in wrapped.calls if call.seen_from == "client" and call.cut_by == "wrap_up"]
    assert [(round(call.ended_at_s, 6), call.outcome, call.error_type) for call in cut] == [
        (21.0, "timeout", "ReadTimeout")
    ]
    assert whats([wrapped]) == [["cut", "told"]]


def test_a_tool_that_is_an_answer_and_one_that_code_calls_run_in_the_reserve() -> None:
    @tool(return_direct=True)
    def final(query: str) -> str:
        """Give the answer."""
        return "direct"

    @tool
    def helper(query: str) -> str:
        """Help."""
        return "helped"

    async def ask(state: Notes) -> Notes:
        return {"log": [helper.invoke({"query": "?"}), await helper.ainvoke({"query": "?"})]}

    original = BaseTool.run
    result = dl.enforce(chain(Notes, ask=ask).compile(), 20, "E", wrap_up=AT_ONCE).invoke({"path": ""})
    assert (result.state["log"], result.wrapped_up) == (["helped", "helped"], None)
    assert BaseTool.run is original
    (run,) = simulated(agent(final), alternatives="A+wrap_up:19.9s")
    assert whats([run]) == [[]]


def test_the_tools_by_which_a_supervisor_answers_are_never_refused() -> None:
    passes_on, policy = create_forward_message_tool(), PropagationPolicy(policies=TimePolicies(wrap_up=RESERVE))
    with hold_scope(Hold(Deadline.after(5.0), policy)), policy_scope(policy):
        assert refusal(look_up.name, "c") is not None
        assert refusal(passes_on.name, "c") is None
        assert refusal("transfer_to_writer", "c") is None


@pytest.mark.parametrize(
    ("left_s", "told_of"),
    [
        (24.1, []),
        (24.0, ["deeper"]),
        (16.0, ["deeper", "inside"]),
        (8.1, ["deeper", "inside"]),
        (8.0, ["deeper", "inside", "outside"]),
    ],
    ids=str,
)
def test_an_agent_inside_a_tool_leaves_the_reserve_of_the_agent_that_called_it(left_s: float, told_of: Any) -> None:
    clock, policy = ManualClock(), PropagationPolicy(policies=TimePolicies(wrap_up=RESERVE))
    hold, body = Hold(Deadline(clock.now() + left_s, 30.0, clock), policy), json.dumps({"messages": [QUESTION]})
    with hold_scope(hold), policy_scope(policy):
        with ToolUnderWay("task").scope():
            with ToolUnderWay("part of it").scope():
                wrap_up_body("deeper", CHAT, [], body.encode)
            inside = wrap_up_body("inside", CHAT, [], body.encode)
            assert (refusal("look_up", "c") is None) == (inside is None)
            # Its own requests may go on until the reserve of its caller.
            assert seconds_of_tool(is_model=False) == pytest.approx(max(0.001, left_s - 8.0))
        wrap_up_body("outside", CHAT, [], body.encode)
        assert (refusal("look_up", "c") is None) == ("outside" not in told_of)
    assert [note.of for note in hold.wrap_ups if note.what == "told"] == told_of


def test_an_error_of_a_tools_own_is_raised_as_ever() -> None:
    @tool
    def broken(query: str) -> str:
        """Break."""
        raise ValueError("broken")

    (run,) = simulated(agent(broken), alternatives="A+wrap_up:0.1s")
    assert (run.run.outcome, run.run.error_type) == ("failed", "ValueError")


# ---- in production, and as a middleware


@pytest.mark.wall
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("in_enforce", [False, True])
@pytest.mark.parametrize("in_agent", [False, True])
def test_hooks_and_middleware_do_the_same_and_both_together_do_it_once(
    is_async: bool, in_enforce: bool, in_agent: bool, stub: Callable[..., StubServer]
) -> None:
    server = stub(at_once)
    middleware = [dl.WrapUpMiddleware(AT_ONCE)] if in_agent else []
    graph = agent(url=f"{server.url}/v1", middleware=middleware, system_prompt="Be brief.")
    enforced = dl.enforce(graph, 20, "E" if is_async else "A", wrap_up=AT_ONCE if in_enforce else None)
    asked = {"messages": [QUESTION]}
    result = asyncio.run(enforced.ainvoke(asked)) if is_async else enforced.invoke(asked)
    body = json.loads(server.requests[0].body)
    if not in_enforce and not in_agent:
        assert (result.wrapped_up, body["tools"] != []) == (None, True)
        return
    assert result.wrapped_up is not None
    assert result.wrapped_up.requests_told == 1
    system, question = body["messages"]
    assert system["content"] == f"Be brief.\n\n{result.wrapped_up.line}"
    assert question["content"] == "?"
    # At the seam tools stay declared and are forbidden; a middleware offers none.
    assert body.get("tool_choice") == (None if in_agent else "none")
    assert ("tools" in body) != in_agent
    assert "wrapped up from 0.0" in repr(result)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_middleware_refuses_tools_in_a_block_with_a_deadline(is_async: bool) -> None:
    used = look_up_async if is_async else look_up
    graph = agent(used, middleware=[dl.WrapUpMiddleware(dl.WrapUp(19.9))])
    (run,) = simulated(graph, alternatives="E" if is_async else "A")
    assert whats([run]) == [["refused", "told"]]
    assert not [e for e in run.events if e.event == "tool_started"]
    assert run.run.outcome == "answered"


def test_a_middleware_outside_every_deadline_changes_nothing() -> None:
    graph = agent(middleware=[dl.WrapUpMiddleware(dl.WrapUp(5))])
    (run,) = simulated(graph, alternatives="unguarded")
    assert (run.run.outcome, whats([run])) == ("answered", [[]])
    with pytest.raises(ConfigurationError, match="must be a WrapUp, not 8; try"):
        dl.WrapUpMiddleware(8)  # type: ignore[arg-type]


# ---- graphs of other people

# Graph of the examples → its time limit in seconds, in which it does not come to its end by itself, and its reserve.
GRAPHS = {
    "parallel_tools": (4.0, 3.5),
    "anthropic_agent": (2.5, 2.4),
    "swarm": (5.0, 4.5),
    "supervisor": (9.0, 6.0),
    "deep_agent": (9.0, 6.0),
}


@pytest.fixture
def _in_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "none")


@pytest.mark.usefixtures("_in_examples")
@pytest.mark.parametrize("arm", often(["A", "E"], "E"))
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_of_the_examples_answers_in_a_time_in_which_it_does_not_otherwise(name: str, arm: str) -> None:
    timeout_s, reserve_s = GRAPHS[name]
    system = dl.graph(f"langgraph.json:{name}", f"{name}.jsonl")
    arms = [arm, f"{arm}+wrap_up:{reserve_s:g}s"]
    study = dl.compare(system, timeout_s, alternatives=arms, runs=8, seed=3, workers=1)
    answered = (study.runs["outcome"] == "answered").groupby(study.runs["alternative_options"].astype("str")).sum()
    plain, wrapped = answered["{}"], answered[f'{{"policies": "wrap_up:{reserve_s:g}s"}}']
    assert wrapped > plain, (plain, wrapped)
    assert not (study.runs["outcome"] == "failed").any()


@pytest.mark.full
@pytest.mark.usefixtures("_in_examples")
@pytest.mark.parametrize(("name", "share", "least_gain"), [("parallel_tools", 0.8, 8), ("swarm", 1.0, 0)])
def test_more_is_answered_where_time_is_short_and_no_less_where_it_is_not(
    name: str, share: float, least_gain: int
) -> None:
    (row,) = load_script(ROOT / "docs" / "make_runway.py").measured(name, (share,), seed=700, runs=20)
    plain, wrapped = row.answered
    assert wrapped - plain >= least_gain, row


@pytest.mark.wall
@pytest.mark.usefixtures("_in_examples")
@pytest.mark.parametrize("name", ["parallel_tools", "supervisor", "deep_agent"])
def test_on_sockets_with_the_services_of_the_lab_it_answers_too(name: str) -> None:
    # Hooks that production installs over those of a run would keep the latter in place once the run is over.
    dl.install()
    system = dl.graph(f"langgraph.json:{name}", f"{name}.jsonl", enforced=True)
    world = dl.World(clock="wall", latencies="fast")
    study = dl.compare(system, 20, alternatives=["E+wrap_up:19.9s"], runs=1, world=world)
    assert set(study.runs["outcome"].astype("str")) == {"answered"}
    assert (study.events["event"] == "wrapped_up").any()


def test_a_reserve_is_the_quantile_of_the_final_model_calls_of_answered_runs() -> None:
    system = dl.graph(agent(), ["a"])
    study = dl.compare(system, 200, alternatives="unguarded", runs=50, seed=1, workers=1)
    wrap_up = dl.WrapUp(dl.findings.final_call_s(study, 0.9), stop_tools=False)
    calls = study.calls[(study.calls["seen_from"] == "client") & (study.calls["kind"] == "llm")]
    final = calls.sort_values("ended_at_s").groupby("run_id").tail(1)
    assert wrap_up.reserve_s == sorted(final["ended_at_s"] - final["started_at_s"])[44]
    assert wrap_up == dl.WrapUp(wrap_up.reserve_s, stop_tools=False)
    with pytest.raises(ConfigurationError, match="the final model call: p99 needs 459 runs: 409 more; measure more"):
        dl.findings.final_call_s(study, 0.99)


# ---- what it is


@pytest.mark.parametrize(
    "wrap_up", [dl.WrapUp(8), dl.WrapUp(2.5, tell="nothing"), dl.WrapUp(3, stop_tools=False)], ids=repr
)
def test_a_policy_is_read_from_the_name_of_an_arm_and_written_as_it(wrap_up: dl.WrapUp) -> None:
    assert TimePolicies.parse(wrap_up.text).wrap_up == wrap_up
    assert eval(repr(wrap_up)) == wrap_up


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: dl.WrapUp(0), "reserve_s must be a finite number of seconds above 0, such as 8.0, not 0"),
        (lambda: dl.WrapUp("p90"), "not 'p90'; dl.findings.final_call_s"),
        (lambda: dl.WrapUp(8, tell="all"), "tell must be 'seconds' or 'nothing', not 'all'"),  # type: ignore[arg-type]
        (lambda: dl.WrapUp(8, tell="nothing", stop_tools=False), "it would do nothing"),
        (
            lambda: TimePolicies.parse("wrap_up"),
            r"give seconds above 0, such as wrap_up:8s \(findings.final_call_s measures them\)",
        ),
        (lambda: TimePolicies.parse("wrap_up:8s/loud"), "after the seconds comes silent or keep_tools, not 'loud'"),
        (lambda: dl.enforce(asking(with_openai, ""), 8, wrap_up=dl.WrapUp(8)), "no tool would ever run"),
        (lambda: dl.enforce(asking(with_openai, ""), 20, "C", wrap_up=dl.WrapUp(8)), "that propagates it, such as A"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_the_remedy(made: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        made()


def test_limits_of_an_arm_stay_beside_the_policy() -> None:
    enforced = dl.enforce(asking(with_openai, ""), 20, "E+limits:idle=5", wrap_up=dl.WrapUp(8))
    assert enforced.alternative.policy.policies.text == "limits:idle=5+wrap_up:8s"  # type: ignore[attr-defined]
