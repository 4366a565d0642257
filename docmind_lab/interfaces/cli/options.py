"""The options of a comparison on the command line, shared by the commands that have them.

An option's default stands in the command, since commands differ in it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError

TIMEOUT_VARIABLE = "DOCMIND_AGENTS__DECISION_TIMEOUT"
_FAULT = (
    "Fault, with =seconds, @attempts, :role and :probability where they are wanted, such as hang, stall=5, "
    "http_500@1 or trickle:synthesis:0.5; may be repeated."
)
_PROFILE = (
    "Latency profile: fast, typical, heavy_tail, local_gpu, coding_2026 or a file of docmind-lab profile; "
    "/N divides it. ROLE=PROFILE is for one role only; may be repeated."
)

# An option in each group of the help.
_system = functools.partial(typer.Option, rich_help_panel="What is put under the deadline")
_budget = functools.partial(typer.Option, rich_help_panel="Its budgets")
_meets = functools.partial(typer.Option, rich_help_panel="What it meets")
_retrieval = functools.partial(typer.Option, rich_help_panel="How it retrieves")
_server = functools.partial(typer.Option, rich_help_panel="What the server does when its client leaves")
_measured = functools.partial(typer.Option, rich_help_panel="How it is measured")
_output = functools.partial(typer.Option, rich_help_panel="What is kept, sent and shown")

Workload = Annotated[
    str,
    _system(help="System under the deadline: supervisor, research, staged or peers; module:ATTRIBUTE for another's."),
]
Documents = Annotated[
    str,
    _system(help="Folder of .md and .txt files; the built-in handbook when left out."),
]
Questions = Annotated[
    str,
    _system(
        help="File of questions to the documents, with the documents that hold the answers: .jsonl, .csv or .json; "
        "those that come with the documents when left out, which yours do not."
    ),
]
Graph = Annotated[
    str,
    _system(
        help="Your own LangGraph graph, or a function that makes one, as module:attribute, file.py:attribute or "
        "langgraph.json:name."
    ),
]
Agent = Annotated[
    str,
    _system(
        help="Your own agent of any framework: a function of a question, or the framework's object, as "
        "module:attribute."
    ),
]
Command = Annotated[
    str, _system(help='A program that reads a question from standard input and writes its answer: "node agent.mjs".')
]
Inputs = Annotated[
    str, _system(help="File of the graph's inputs, or the agent's questions: one JSON object, or text, in each line.")
]
_EXAMPLE_ANSWER = '{"approved": true}'
Context = Annotated[str, _system(help="Context of your graph's runs, as a JSON object.")]
Config = Annotated[
    str, _system(help='Configuration of its runs as a JSON object, or what stands under "configurable" there.')
]
Store = Annotated[
    str,
    _system(
        help="A function that makes the store of one run, as module:attribute; your graph's own, or an empty one in "
        "memory, when left out."
    ),
]
Resume = Annotated[
    list[str] | None,
    _system(
        help=f"What an interrupt of your graph is answered with, as JSON ({_EXAMPLE_ANSWER}) or text; may be repeated."
    ),
]
Endpoints = Annotated[
    str,
    _system(
        help="File with simulated endpoints of other services that your graph calls, beside the ready ones (TOML)."
    ),
]
DeadlineKey = Annotated[str, _system(help="Key of the graph's input that takes the deadline, if it has one.")]
Services = Annotated[
    str,
    _system(help="What answers your graph: simulated, or own (wall clock): its endpoints, which cost what they cost."),
]

Enforced = Annotated[bool, _system("--enforced", help="Run your graph through enforce, as in production.")]

DecisionTimeout = Annotated[
    float | None,
    _budget(help=f"Budget of one question, in seconds; {TIMEOUT_VARIABLE} or 20 when left out, 2 on the wall clock."),
]
BudgetTokens = Annotated[
    int | None, _budget(help="Tokens that a run may use, read and written; no limit when left out.")
]
BudgetCalls = Annotated[int | None, _budget(help="Requests to the model that a run may make; no limit when left out.")]
BudgetCost = Annotated[
    float | None, _budget(help="What a run may cost, in the currency of --price; no limit when left out.")
]
Price = Annotated[str, _budget(help="INPUT/OUTPUT, the price of a million tokens of each, such as 0.15/0.60.")]

Profile = Annotated[
    list[str] | None, _meets(help=f"{_PROFILE} heavy_tail/3 when left out, typical/6 on the wall clock.")
]
ServiceProfile = Annotated[list[str] | None, _meets(help=f"{_PROFILE} typical when left out.")]
SimulatedProfile = Annotated[
    list[str] | None, _meets(help=f"Of the simulated services, fast when left out. {_PROFILE}")
]
Faults = Annotated[list[str] | None, _meets(help=_FAULT)]
SimulatedFaults = Annotated[list[str] | None, _meets(help=f"Of the simulated services. {_FAULT}")]
StopsOnDisconnect = Annotated[
    bool,
    _server(
        " /--no-stops-on-disconnect",
        help="Have the model server go on generating; it stops when left out.",
        show_default=False,
    ),
]
ServerBehaviour = Annotated[
    str,
    _meets(
        help="What the model server does when its client leaves: a profile, such as llama-cpp-2026.10, or a .json file "
        "of docmind-lab probe server."
    ),
]
Retries = Annotated[int | None, _meets(help="Tries after the first; the clients' own defaults when left out.")]
RouterInjection = Annotated[
    bool | None,
    _retrieval(
        "--router-injection/--no-router-injection",
        help="Retrieval asks a router engine first; as the setting says when left out, which is no.",
    ),
]

Runs = Annotated[
    int | None, _measured(help="Questions asked of each alternative; 40 when left out, 8 on the wall clock.")
]
Seed = Annotated[int, _measured(help="Keys the questions, latencies and faults.")]
Alternatives = Annotated[
    str | None, _measured(help="Levels, letters or variants, such as A,B,B:naive,unguarded; all when left out.")
]
Clock = Annotated[
    str, _measured(help="virtual (simulated time) or wall (sockets, real time); wall for live endpoints.")
]
Workers = Annotated[int | None, _measured(help="Processes in virtual time; one on each core when left out.")]
SideBySide = Annotated[
    int | None,
    _measured(
        help="Runs under way at once on the wall clock; 4 when left out, 1 for your own graph or a live endpoint. 1 "
        "also measures coordination overhead."
    ),
]
ModelVariation = Annotated[
    float, _meets(help="Share of the simulated model's decisions that go another way than the best, from 0 to 1.")
]
ModelUnderPressure = Annotated[
    str,
    _meets(
        help="What the simulated model does when the policy aware tells it that little time is left, and how little: "
        "hurries:0.25, panics:0.25, ignores. An assumption."
    ),
]
Adoption = Annotated[
    float, _meets(help="Share of the services of the workload hops that hold to a deadline on the wire, from 0 to 1.")
]
CpuCharge = Annotated[
    str,
    _measured(
        help="CPU seconds that each request costs in virtual time, or 'measured'; Python's work takes none by default."
    ),
]

Out = Annotated[str, _output(help="Folder for tables, plots and report; results/<UTC time>-compare when left out.")]
Record = Annotated[
    str,
    _output(help="Folder for a recording of the study (wall clock): timings of every call, to replay with --replay."),
]
RecordText = Annotated[
    bool,
    _output(
        "--record-text", help="Record what was answered too, and digests of what was asked; without it no text is kept."
    ),
]
Replay = Annotated[
    str,
    _output(
        help="Folder of a recording to replay in virtual time; budget, runs, alternatives and retries may be others."
    ),
]
MaxRequests = Annotated[
    int | None, _output(help="End the study before it sends more model requests than this (wall clock).")
]
MaxTokens = Annotated[
    int | None,
    _output(help="End the study when its model calls have taken this many tokens; calls under way may pass it."),
]
Yes = Annotated[bool, _output("--yes", help="Do not ask before requests are sent to a live endpoint.")]
Otlp = Annotated[
    bool, _output("--otlp", help="Send spans of runs and calls to where OTEL_EXPORTER_OTLP_ENDPOINT says.")
]
MetricsFile = Annotated[str, _output(help="Write Prometheus metrics of the runs to this file; none when left out.")]
Verbose = Annotated[bool, _output("--verbose", help="Print the full table and a sentence for each alternative too.")]
SummaryAsJson = Annotated[bool, _output("--json", help="Print the summary as JSON and nothing else.")]


def of_graph(context: str, config: str, resume: Sequence[str] | None) -> dict[str, Any]:
    """Return the values of the options of a user's graph that hold JSON, as `compare` takes them.

    Raises:
        ConfigurationError: A context or configuration that is no JSON object.
    """
    values: dict[str, Any] = {}
    for name, text in (("context", context), ("config", config)):
        if text:
            values[name] = _json_object(f"--{name}", text)
    if resume:
        values["resume"] = [_json_or_text(each) for each in resume]
    return values


def _json_object(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigurationError(f'{option} must be a JSON object, such as \'{{"user_id": "ada"}}\', not {text}')
    return value


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
