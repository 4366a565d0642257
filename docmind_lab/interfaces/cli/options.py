"""What can be said of a comparison on the command line: an option each, shared by the commands that have it.

An option's default stands in the command, since commands differ in it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from docmind_lab.interfaces.cli import sending

TIMEOUT_VARIABLE = "DOCMIND_AGENTS__DECISION_TIMEOUT"
_FAULT = (
    "Fault, with =seconds, @attempts, :role and :probability where they are wanted, such as hang, stall=5, "
    "http_500@1 or trickle:synthesis:0.5; may be repeated."
)
_PROFILE = "Latency profile: fast, typical, heavy_tail, local_gpu or a file of docmind-lab profile; /N divides it."

# The groups of the help.
_SYSTEM = "What is put under the deadline"
_BUDGETS = "Its budgets"
_MEETS = "What it meets"
_RETRIEVAL = "How it retrieves"
_SERVER = "What the server does when its client leaves"
_MEASURED = "How it is measured"
_OUTPUT = "What is kept, sent and shown"

# What is put under the deadline.
Workload = Annotated[
    str,
    typer.Option(
        rich_help_panel=_SYSTEM,
        help="System under the deadline: supervisor, research, staged or peers; module:ATTRIBUTE for another's.",
    ),
]
Documents = Annotated[
    str,
    typer.Option(
        rich_help_panel=_SYSTEM,
        help="Folder that docmind-lab index has indexed, or handbook; Python's language reference when left out.",
    ),
]
Questions = Annotated[
    str,
    typer.Option(
        rich_help_panel=_SYSTEM,
        help="File of questions to the documents, with the documents that hold the answers: .jsonl, .csv or .json; "
        "those that come with the documents when left out, which yours do not.",
    ),
]
Graph = Annotated[
    str,
    typer.Option(
        rich_help_panel=_SYSTEM, help="Your own LangGraph graph, or a function that makes one, as module:attribute."
    ),
]
Inputs = Annotated[
    str,
    typer.Option(rich_help_panel=_SYSTEM, help="File of the graph's inputs: one JSON object, or text, in each line."),
]
DeadlineKey = Annotated[
    str, typer.Option(rich_help_panel=_SYSTEM, help="Key of the graph's input that takes the deadline, if it has one.")
]
Services = Annotated[
    str,
    typer.Option(
        rich_help_panel=_SYSTEM,
        help="What answers your graph: simulated, or own (wall clock): its endpoints, which cost what they cost.",
    ),
]

# Its budgets.
DecisionTimeout = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_BUDGETS,
        help=f"Budget of one question, in seconds; {TIMEOUT_VARIABLE} or 20 when left out, 2 on the wall clock.",
    ),
]
BudgetTokens = Annotated[
    int | None,
    typer.Option(rich_help_panel=_BUDGETS, help="Tokens that a run may use, read and written; no limit when left out."),
]
BudgetCalls = Annotated[
    int | None,
    typer.Option(rich_help_panel=_BUDGETS, help="Requests to the model that a run may make; no limit when left out."),
]
BudgetCost = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_BUDGETS, help="What a run may cost, in the currency of --price; no limit when left out."
    ),
]
Price = Annotated[
    str,
    typer.Option(
        rich_help_panel=_BUDGETS, help="INPUT/OUTPUT, the price of a million tokens of each, such as 0.15/0.60."
    ),
]

# What it meets.
Profile = Annotated[
    str,
    typer.Option(rich_help_panel=_MEETS, help=f"{_PROFILE} heavy_tail/3 when left out, typical/6 on the wall clock."),
]
ServiceProfile = Annotated[str, typer.Option(rich_help_panel=_MEETS, help=_PROFILE)]
SimulatedProfile = Annotated[
    str, typer.Option(rich_help_panel=_MEETS, help=f"Of the simulated services, fast when left out. {_PROFILE}")
]
Faults = Annotated[list[str] | None, typer.Option(rich_help_panel=_MEETS, help=_FAULT)]
SimulatedFaults = Annotated[
    list[str] | None, typer.Option(rich_help_panel=_MEETS, help=f"Of the simulated services. {_FAULT}")
]
StopsOnDisconnect = Annotated[
    bool,
    typer.Option(
        " /--no-stops-on-disconnect",
        rich_help_panel=_SERVER,
        help="Have the model server go on generating; it stops when left out.",
        show_default=False,
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(rich_help_panel=_MEETS, help="Tries after the first; the clients' own defaults when left out."),
]
RouterInjection = Annotated[
    bool | None,
    typer.Option(
        "--router-injection/--no-router-injection",
        rich_help_panel=_RETRIEVAL,
        help="Retrieval asks a router engine first; as the setting says when left out, which is no.",
    ),
]

# How it is measured.
Runs = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=_MEASURED, help="Questions asked of each alternative; 40 when left out, 8 on the wall clock."
    ),
]
Seed = Annotated[int, typer.Option(rich_help_panel=_MEASURED, help="Keys the questions, latencies and faults.")]
Alternatives = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MEASURED, help="Levels, letters or variants, such as A,B,B:naive,unguarded; all when left out."
    ),
]
Clock = Annotated[
    str,
    typer.Option(
        rich_help_panel=_MEASURED,
        help="virtual (simulated time) or wall (sockets, real time); wall for live endpoints.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(rich_help_panel=_MEASURED, help="Processes in virtual time; one on each core when left out."),
]
SideBySide = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=_MEASURED,
        help="Runs under way at once on the wall clock; 4 when left out, 1 for your own graph or a live endpoint. 1 "
        "also measures coordination overhead.",
    ),
]
ModelVariation = Annotated[
    float,
    typer.Option(
        rich_help_panel=_MEETS,
        help="Share of the simulated model's decisions that go another way than the best, from 0 to 1.",
    ),
]
CpuCharge = Annotated[
    str,
    typer.Option(
        rich_help_panel=_MEASURED,
        help="CPU seconds that each request costs in virtual time, or 'measured'; Python's work takes none by default.",
    ),
]

# What is kept, sent and shown of it.
Out = Annotated[
    str,
    typer.Option(
        rich_help_panel=_OUTPUT, help="Folder for tables, plots and report; results/<UTC time>-compare when left out."
    ),
]
Record = Annotated[str, typer.Option(rich_help_panel=_OUTPUT, help=sending.RECORD_HELP)]
RecordText = Annotated[bool, typer.Option("--record-text", rich_help_panel=_OUTPUT, help=sending.RECORD_TEXT_HELP)]
Replay = Annotated[str, typer.Option(rich_help_panel=_OUTPUT, help=sending.REPLAY_HELP)]
MaxRequests = Annotated[int | None, typer.Option(rich_help_panel=_OUTPUT, help=sending.MAX_REQUESTS_HELP)]
MaxTokens = Annotated[int | None, typer.Option(rich_help_panel=_OUTPUT, help=sending.MAX_TOKENS_HELP)]
Yes = Annotated[bool, typer.Option("--yes", rich_help_panel=_OUTPUT, help=sending.YES_HELP)]
Otlp = Annotated[
    bool,
    typer.Option(
        "--otlp",
        rich_help_panel=_OUTPUT,
        help="Send spans of runs and calls to where OTEL_EXPORTER_OTLP_ENDPOINT says.",
    ),
]
MetricsFile = Annotated[
    str,
    typer.Option(
        rich_help_panel=_OUTPUT, help="Write Prometheus metrics of the runs to this file; none when left out."
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", rich_help_panel=_OUTPUT, help="Print the full table and a sentence for each alternative too."
    ),
]
SummaryAsJson = Annotated[
    bool, typer.Option("--json", rich_help_panel=_OUTPUT, help="Print the summary as JSON and nothing else.")
]
