"""The checks of `docmind-lab doctor --command`: what a program is given, and what it does with one question."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.run import MeasuredRun, measure
from docmind_lab.network.endpoints import Check
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.kinds import workload_kind
from docmind_lab.systems.own import Inputs
from docmind_lab.systems.own.programs import Program, own_program
from docmind_lab.systems.own.programs.program import TIMEOUT_VARIABLE, TIMEOUT_WORD, service_variables

_CLIENT = (
    "have its client read OPENAI_BASE_URL (or ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL, OLLAMA_HOST), and no fixed "
    "address"
)


def diagnose_program(command: str | Sequence[str], inputs: Inputs, limit_s: float) -> Iterator[Check]:
    """Yield the result of each check of a program: it is found, its variables, its own timeout, one question.

    inputs: its questions, of which the first is asked, on simulated services. limit_s: how long the question may take,
    in seconds; the program is ended then.

    Raises: ConfigurationError if the command cannot be started, or its questions cannot be used.
    """
    program = Program.of(command)
    yield Check("program", "ok", f"{program.command[0]} is {shutil.which(program.command[0])}")
    addresses = [name for name in service_variables("") if not name.endswith(("_KEY", "_MODEL"))]
    yield Check("variables", "ok", f"{', '.join(addresses)} name the simulated services; keys of models are set")
    if program.has_timeout:
        yield Check("own timeout", "ok", f"{TIMEOUT_WORD} in the command stands for it")
    else:
        yield Check(
            "own timeout",
            "note",
            f"under F {TIMEOUT_VARIABLE} states it, in seconds; {TIMEOUT_WORD} in an argument stands for it",
        )
    yield _first_question(command, inputs, limit_s)


def _first_question(command: str | Sequence[str], inputs: Inputs, limit_s: float) -> Check:
    try:
        measured = _asked_once(command, inputs, limit_s)
    except ConfigurationError as error:
        # A program that asked no model; the message says what it did instead.
        return Check("one question", "failed", str(error), _CLIENT)
    run = measured.run
    asked = f"{run.llm_calls} request{'s' * (run.llm_calls != 1)} to a model"
    if run.outcome == "answered":
        return Check("one question", "ok", f"answered in {run.returned_at_s:.1f} s, with {asked}")
    if run.outcome == "failed":
        remedy = "mend the program; its standard error ends with the line above"
        return Check("one question", "failed", f"{asked}, then it failed: {measured.outcome.error}", remedy)
    found = f"no answer within {limit_s:g} s, with {asked}"
    if not run.llm_calls:
        return Check("one question", "failed", found, _CLIENT)
    return Check("one question", "failed", found, "give it longer (--decision-timeout), or look at what it waits for")


def _asked_once(command: str | Sequence[str], inputs: Inputs, limit_s: float) -> MeasuredRun:
    """Return the run of the first question; B ends its program at the limit, by SIGKILL."""
    own = own_program(command, inputs)
    comparison = Comparison(
        decision_timeout_s=limit_s,
        runs=own.questions,
        horizon_factor=1.5,
        alternatives=parse_alternatives("B"),
        profile=LatencyProfile.named("fast"),
        workload=own.workload,
        documents=Documents(own.corpus),
        clock="wall",
    )
    kind, settings = workload_kind(own.workload), Settings()
    with kind.serve(ServiceOptions(comparison.profile, slots_of_run=True)) as services:
        workload, log = kind.build(Surroundings(services.addresses, settings)), services.log_client()
        try:
            order = min(comparison.orders(), key=lambda order: order.question.id)
            return measure(order, workload, log)
        finally:
            workload.close()
            log.close()
