"""The options of a comparison on the command line, shared by the commands that have them.

An option's default stands in the command, since commands differ in it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, get_origin

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
_EXAMPLE_ANSWER = '{"approved": true}'

# By the groups in which the help shows them. The defaults stand in the commands, since they differ in them.
_HELP: Final = {
    "What is put under the deadline": {
        "workload": "System under the deadline: supervisor, research, staged or peers; module:ATTRIBUTE for another's.",
        "documents": "Folder of .md and .txt files; the built-in handbook when left out.",
        "questions": (
            "File of questions to the documents, with the documents that hold the answers: .jsonl, .csv or .json; "
            "those that come with the documents when left out, which yours do not."
        ),
        "graph": (
            "Your own LangGraph graph, or a function that makes one, as module:attribute, file.py:attribute or "
            "langgraph.json:name."
        ),
        "agent": (
            "Your own agent of any framework: a function of a question, or the framework's object, as module:attribute."
        ),
        "command": 'A program that reads a question from standard input and writes its answer: "node agent.mjs".',
        "inputs": "File of the graph's inputs, or the agent's questions: one JSON object, or text, in each line.",
        "deadline_key": "Key of the graph's input that takes the deadline, if it has one.",
        "context": "Context of your graph's runs, as a JSON object.",
        "config": 'Configuration of its runs as a JSON object, or what stands under "configurable" there.',
        "store": (
            "A function that makes the store of one run, as module:attribute; your graph's own, or an empty one in "
            "memory, when left out."
        ),
        "resume": (
            f"What an interrupt of your graph is answered with, as JSON ({_EXAMPLE_ANSWER}) or text; may be repeated."
        ),
        "endpoints": (
            "File with simulated endpoints of other services that your graph calls, beside the ready ones (TOML)."
        ),
        "services": (
            "What answers your graph: simulated, or own (wall clock): its endpoints, which cost what they cost."
        ),
        "enforced": "Run your graph through enforce, as in production.",
    },
    "Its budgets": {
        "decision_timeout": (
            f"Budget of one question, in seconds; {TIMEOUT_VARIABLE} or 20 when left out, 2 on the wall clock."
        ),
        "budget_tokens": "Tokens that a run may use, read and written; no limit when left out.",
        "budget_calls": "Requests to the model that a run may make; no limit when left out.",
        "budget_cost": "What a run may cost, in the currency of --price; no limit when left out.",
        "price": "INPUT/OUTPUT, the price of a million tokens of each, such as 0.15/0.60.",
    },
    "What it meets": {
        "profile": f"{_PROFILE} heavy_tail/3 when left out, typical/6 on the wall clock.",
        "fault": _FAULT,
        "server_behaviour": (
            "What the model server does when its client leaves: a profile, such as llama-cpp-2026.10, or a .json file "
            "of docmind-lab probe server."
        ),
        "retries": "Tries after the first; the clients' own defaults when left out.",
        "model_variation": "Share of the simulated model's decisions that go another way than the best, from 0 to 1.",
        "model_under_pressure": (
            "What the simulated model does when the policy aware tells it that little time is left, and how little: "
            "hurries:0.25, panics:0.25, ignores. An assumption."
        ),
        "adoption": "Share of the services of the workload hops that hold to a deadline on the wire, from 0 to 1.",
    },
    "How it retrieves": {
        "router_injection": "Retrieval asks a router engine first; as the setting says when left out, which is no.",
    },
    "What the server does when its client leaves": {
        "stops_on_disconnect": "Have the model server go on generating; it stops when left out.",
    },
    "How it is measured": {
        "runs": "Questions asked of each alternative; 40 when left out, 8 on the wall clock.",
        "seed": "Keys the questions, latencies and faults.",
        "alternatives": "Levels, letters or variants, such as A,B,B:naive,unguarded; all when left out.",
        "clock": "virtual (simulated time) or wall (sockets, real time); wall for live endpoints.",
        "workers": "Processes in virtual time; one on each core when left out.",
        "side_by_side": (
            "Runs under way at once on the wall clock; 4 when left out, 1 for your own graph or a live endpoint. 1 "
            "also measures coordination overhead."
        ),
        "cpu_charge": (
            "CPU seconds that each request costs in virtual time, or 'measured'; Python's work takes none by default."
        ),
    },
    "What is kept, sent and shown": {
        "out": "Folder for tables, plots and report; results/<UTC time>-compare when left out.",
        "record": "Folder for a recording of the study (wall clock): timings of every call, to replay with --replay.",
        "record_text": "Record what was answered too, and digests of what was asked; without it no text is kept.",
        "replay": (
            "Folder of a recording to replay in virtual time; budget, runs, alternatives and retries may be others."
        ),
        "max_requests": "End the study before it sends more model requests than this (wall clock).",
        "max_tokens": "End the study when its model calls have taken this many tokens; calls under way may pass it.",
        "yes": "Do not ask before requests are sent to a live endpoint.",
        "otlp": "Send spans of runs and calls to where OTEL_EXPORTER_OTLP_ENDPOINT says.",
        "metrics_file": "Write Prometheus metrics of the runs to this file; none when left out.",
        "verbose": "Print the full table and a sentence for each alternative too.",
        "as_json": "Print the summary as JSON and nothing else.",
    },
}

_PANELS: Final = {name: panel for panel, options in _HELP.items() for name in options}
_FLAGS: Final = {
    "stops_on_disconnect": (" /--no-stops-on-disconnect",),
    "router_injection": ("--router-injection/--no-router-injection",),
    "as_json": ("--json",),
} | {name: (f"--{name.replace('_', '-')}",) for name in ("enforced", "record_text", "yes", "otlp", "verbose")}


def _option(name: str, text: str = "") -> Any:
    """Return the option of a parameter. text: its help, where it is another than in `compare`."""
    panel = _PANELS[name]
    shows_default = name != "stops_on_disconnect"
    return typer.Option(
        *_FLAGS.get(name, ()), help=text or _HELP[panel][name], rich_help_panel=panel, show_default=shows_default
    )


def documented(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command, with the help for those of its parameters that say no more than their type."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [
        each.replace(annotation=Annotated[each.annotation, _option(each.name)])
        if each.name in _PANELS and get_origin(each.annotation) is not Annotated
        else each
        for each in signature.parameters.values()
    ]
    vars(command)["__signature__"] = signature.replace(parameters=parameters)
    return command


Documents = Annotated[str, _option("documents")]
Graph = Annotated[str, _option("graph")]
Agent = Annotated[str, _option("agent")]
Command = Annotated[str, _option("command")]
Inputs = Annotated[str, _option("inputs")]
Context = Annotated[str, _option("context")]
Config = Annotated[str, _option("config")]
Store = Annotated[str, _option("store")]
Resume = Annotated[list[str] | None, _option("resume")]
Endpoints = Annotated[str, _option("endpoints")]
DeadlineKey = Annotated[str, _option("deadline_key")]
ServiceProfile = Annotated[list[str] | None, _option("profile", f"{_PROFILE} typical when left out.")]
SimulatedProfile = Annotated[
    list[str] | None, _option("profile", f"Of the simulated services, fast when left out. {_PROFILE}")
]
Faults = Annotated[list[str] | None, _option("fault")]
SimulatedFaults = Annotated[list[str] | None, _option("fault", f"Of the simulated services. {_FAULT}")]
StopsOnDisconnect = Annotated[bool, _option("stops_on_disconnect")]
ServerBehaviour = Annotated[str, _option("server_behaviour")]
Workers = Annotated[int | None, _option("workers")]


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
