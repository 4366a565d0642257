"""`docmind-lab ask`: one question, to documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.cli.console import json_safe, load_settings
from docmind_lab.views.cli.fields_as_options import TIMEOUT_VARIABLE, Given, takes

if TYPE_CHECKING:
    from docmind_lab.core.settings import Settings
    from docmind_lab.services.server import ServiceOptions
    from docmind_lab.systems.base.documents import Library
    from docmind_lab.systems.docmind.coordinator import AgentResponse

NOT_ANSWERED = 1


@takes("documents", "latencies", "faults")
def ask(
    options: Given,
    question: Annotated[str, typer.Argument(help="The question, in words.")],
    decision_timeout: Annotated[
        float | None, typer.Option(help=f"Budget, in seconds; {TIMEOUT_VARIABLE} or 20 when left out.")
    ] = None,
    alternative: Annotated[
        str, typer.Option(help="How the deadline is enforced: A to F or a name; A when left out.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the response as JSON and nothing else.")] = False,
) -> None:
    """Answer a question within the budget: the answer, then its sources, and whether the budget cut it.

    The simulated model and vector store are used for whatever DOCMIND_LLM__BASE_URL and DOCMIND_DATABASE__QDRANT_URL
    do not name; their latencies are "fast" when left out. The simulated model extracts sentences; it is not a language
    model.
    Exit code 1: there is no whole answer of the agents, or none was found in the documents.
    """
    from docmind_lab.services.scripted_model.extraction import NOT_FOUND
    from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

    settings = load_settings()
    if decision_timeout is not None:
        settings = settings.replaced(agents={"decision_timeout": decision_timeout})
    services, corpus = _services(options, settings), _corpus(options.get("documents", ""))
    with MultiAgentCoordinator(settings, alternative=alternative or None, services=services, corpus=corpus) as made:
        response = made.process_query(question)
    if as_json:
        typer.echo(json.dumps(json_safe(vars(response)), indent=2))
    else:
        typer.echo(response.content)
        _print_end(response, is_simulated=settings.llm.base_url is None)
    if response.metadata["outcome"] != "answered" or response.content.startswith(NOT_FOUND):
        raise typer.Exit(NOT_ANSWERED)


def _services(options: Given, settings: Settings) -> ServiceOptions:
    """Return what the simulated services do. Raises: ConfigurationError for options where none of them answers."""
    from docmind_lab.services.faults import Fault
    from docmind_lab.services.server import ServiceOptions
    from docmind_lab.statistics.latency.profile import latency_profile

    if settings.llm.base_url and settings.database.qdrant_url:
        for name in {"latencies", "faults"} & options.keys():
            raise ConfigurationError(f"--{name} is of the simulated services, and yours answer here; leave it out")
    faults = tuple(Fault.parse(text) for text in options.get("faults", ()))
    return ServiceOptions(profile=latency_profile(options.get("latencies", ()), "fast"), faults=faults)


def _corpus(documents: str) -> Library | None:
    if documents in ("", "handbook"):
        return None
    from docmind_lab.systems.base.documents import read_library

    return read_library(documents)


def _print_end(response: AgentResponse, *, is_simulated: bool) -> None:
    from docmind_lab.views.cli.console import console

    out = console()
    metadata, took_s = response.metadata, response.processing_time
    budget_s = metadata["decision_timeout_s"]
    cited = [source for source in response.sources if f"[{source['id']}]" in response.content]
    # A live model may cite in another way, or not at all.
    sources = cited if cited or is_simulated else response.sources
    if sources:
        out.print()
        out.print("Sources" if cited else "Documents found; the answer cites none", style="bold")
        for source in sources:
            section = source.get("metadata", {}).get("section", "")
            out.print(f"  {source['id']}  {section}")
    out.print()
    # What there is instead of an answer has said so itself.
    if response.timed_out and not response.content.startswith("No answer"):
        out.print(f"Cut by the budget: {budget_s:g} s were over ({metadata['cancel_reason']}).")
    if is_simulated:
        out.print("A simulated model wrote this: it extracts sentences, and is not a language model.")
    late = f", {metadata['overrun_s'] * 1000:.0f} ms over" if metadata["overrun_s"] > 0 else ""
    calls = response.optimization_metrics
    score = "" if response.validation_score is None else f" · {response.validation_score:.0%} of statements supported"
    usage = f"model calls: {calls['llm_calls']:.0f}, searches: {calls['retrieval_calls']:.0f}"
    out.print(f"{took_s:.2f} s of {budget_s:g} s{late} · {usage}{score} · {metadata['alternative'].replace('_', ' ')}")
