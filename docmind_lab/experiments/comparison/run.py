"""`compare`, and a comparison carried out: its runs, its study, its folder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from docmind_lab.alternatives import Alternative
from docmind_lab.analysis.cell_store import CellStore
from docmind_lab.analysis.latency.by_role import ProfileChoice
from docmind_lab.analysis.manifest import MachineUse, manifest_of
from docmind_lab.analysis.study import Study, prepare_folder
from docmind_lab.analysis.tables.frames import to_frame
from docmind_lab.core.budgets import Budget
from docmind_lab.core.clock import ClockName, CpuCharge
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.docmind.retrieval.corpus import HANDBOOK
from docmind_lab.experiments.batch.runner import Progress
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.live_estimate import asks_live_endpoints, expected_to_send
from docmind_lab.experiments.comparison.own_graph import not_exercised
from docmind_lab.experiments.comparison.request import DEFAULT_SEED, DEFAULT_WORKLOAD, CompareRequest
from docmind_lab.experiments.comparison.resolve import resolve
from docmind_lab.experiments.comparison.virtual import runs_in_virtual_time
from docmind_lab.experiments.comparison.wall import runs_on_the_wall_clock
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.experiments.recordings.account import account_of
from docmind_lab.experiments.recordings.live_study import NO_RECORDING, LiveStudy, RecordingOptions
from docmind_lab.experiments.recordings.recording import Recording
from docmind_lab.services.faults import Fault
from docmind_lab.services.scripted_model.time_pressure import DEFAULT_UNDER_PRESSURE
from docmind_lab.workloads.kinds import systems_said
from docmind_lab.workloads.own import Inputs, Services, StoreMaker

Watch = Callable[[pd.DataFrame], None]
BeforeSending = Callable[[str], None]

# A person reads no faster, and making a summary takes some milliseconds.
_LOOK_EVERY_S = 0.5

CELLS = "cells"
"""Where the finished cells of a comparison are while it goes on; its tables take their place."""


class RunListener(Protocol):
    """Who is told of measured runs when all are done: `docmind_lab.telemetry.Telemetry`."""

    def check(self, settings: Settings) -> None:
        """Return if it can be told. Called before the first run. Raises: ConfigurationError, EndpointRefused."""
        ...

    def tell(self, measured: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> None:
        """Take the runs and the manifest of their study; never raises."""
        ...


def compare(
    decision_timeout_s: float | None = None,
    runs: int | None = None,
    seed: int = DEFAULT_SEED,
    *,
    alternatives: Sequence[str | Alternative] | str | None = None,
    profile: ProfileChoice | None = None,
    fault: Sequence[str | Fault] | str = (),
    stops_on_disconnect: bool = True,
    server_behaviour: ServerBehaviour | str | None = None,
    retries: int | None = None,
    router_injection: bool | None = None,
    budget: Budget | None = None,
    workload: str = DEFAULT_WORKLOAD,
    documents: str | os.PathLike[str] = HANDBOOK,
    questions: str | os.PathLike[str] | None = None,
    graph: Any = None,
    agent: Any = None,
    command: str | Sequence[str] | None = None,
    inputs: Inputs | None = None,
    deadline_key: str = DEADLINE_KEY,
    context: Any = None,
    config: Mapping[str, Any] | None = None,
    store: str | StoreMaker | None = None,
    resume: Sequence[Any] = (),
    endpoints: str | os.PathLike[str] | None = None,
    services: Services = "simulated",
    enforced: bool = False,
    clock: ClockName | None = None,
    workers: int | None = None,
    side_by_side: int | None = None,
    cpu_charge: CpuCharge = 0.0,
    model_variation: float = 0.0,
    model_under_pressure: str = DEFAULT_UNDER_PRESSURE,
    adoption: float = 0.0,
    settings: Settings | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    record: str | os.PathLike[str] | None = None,
    record_text: bool = False,
    replay: str | os.PathLike[str] | None = None,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    before_sending: BeforeSending | None = None,
    telemetry: RunListener | None = None,
) -> Study:
    """Ask the same questions under every alternative, and measure each run.

        study = dl.compare(decision_timeout_s=20, runs=40, seed=7)
        study                                   # a table, and what it says
        dl.compare(fault="hang", alternatives="A,B,C")
        dl.compare(clock="wall")                # over sockets, in real time
        dl.compare(graph=my_graph, inputs=["…"])    # your own graph; docs/own-graph.md
        dl.compare(agent=my_function, inputs=["…"])    # any other agent; docs/other-agents.md
        dl.compare(command=["node", "agent.mjs"], inputs=["…"])    # a program in any language
        dl.compare(documents="papers", questions="questions.jsonl")    # your own documents; docs/own-documents.md
        dl.compare(clock="wall", record="monday")   # then dl.compare(replay="monday"); docs/own-endpoint.md

    Args:
        decision_timeout_s: The budget of each run, in seconds. Defaults to 20, on the wall clock to 2.
        runs: How many questions each alternative is asked. Defaults to 40, on the wall clock to 8.
        seed: Keys the questions, latencies and faults.
        alternatives: Levels, letters ("A"), variants ("A:per_read", "B:naive") or instances. None means all.
        profile: A latency profile or its name. Defaults to "heavy_tail/3", on the wall clock to "typical/6". Or
            profiles by role, such as {"*": "typical", "judge": "judge.json"}; of your own graph, roles are its nodes.
        fault: One fault or several, as `services.faults` writes them.
        stops_on_disconnect: Whether the model server stops generating when its client leaves.
        server_behaviour: What it does then, in more words: the name of a profile that ships with the package, such as
            "llama-cpp-2026.10", or a .json file that `docmind-lab probe server` wrote.
        retries: Tries after the first, of whoever retries under an alternative. None leaves the openai client its 2.
        router_injection: Whether retrieval asks a router engine first, as in ADR-056. None means as the settings say.
        budget: Tokens, calls and cost of each run. It is measured everywhere, and enforced where the deadline is
            propagated. Its `time_s` is the decision timeout by another name.
        workload: The system under the deadline, one of `workloads.WORKLOADS`. The defaults here are those of
            "supervisor", which is DocMind itself.
        documents: "handbook", which comes with twelve questions, or a folder of .md and .txt files.
        questions: A file of your own questions: .jsonl, .csv or .json. None means those that come with the documents;
            a folder's do not come with any.
        graph: A compiled LangGraph graph, a function that makes one, or a reference, which worker processes can find
            too: "module:attribute", "file.py:attribute" or "langgraph.json:name". It takes the place of a workload.
        agent: A function of a question, `async` or not, an agent of another framework, or a reference to one. It takes
            the place of a workload.
        command: A program and its arguments, which reads a question from standard input and writes its answer to
            standard output, on the wall clock. It takes the place of a workload.
        inputs: The graph's inputs, or the agent's questions, as a list, or a file with one in each line.
        deadline_key: The key of the graph's input that takes the deadline, if it has one.
        context: Context of the graph's runs, as its `context_schema` has it.
        config: Configuration of its runs, or what stands under "configurable" there.
        store: A function that makes the store of one run, or a reference to it. None means the graph's own, or else an
            empty one in memory, such as LangGraph's server gives to every graph.
        resume: What the graph's interrupts are answered with, in their order, at once and within the budget.
        endpoints: A file with simulated endpoints of other services that the graph calls, beside the ready ones.
        services: "simulated": simulated services answer whatever host the graph names, no key is used and nothing is
            spent. "own": requests go where the graph's code sends them, on the wall clock only.
        enforced: Whether your graph runs through `enforce`, as it would in production, under each alternative.
        clock: "virtual": the same stack in simulated time, without waiting, with the same tables every time. "wall":
            real time. None means "wall" if the settings name a live endpoint, else "virtual".
        workers: Processes in virtual time. None means one on each core, or none for a few runs.
        side_by_side: Runs under way at once on the wall clock; 1 also measures coordination overhead. None means 4,
            or 1 with a live endpoint, which all runs share, or with a graph of your own, whose nodes may block the
            event loop that runs share. Each run has the slots of a profile to itself.
        cpu_charge: CPU seconds that each request to a model or a store costs in virtual time, where Python's own work
            takes no time otherwise. "measured" charges what it took, and tables then differ between repeats.
        model_variation: Share, from 0 to 1, of the simulated model's decisions that go another way than the best:
            wrong hand-overs, searches for a part of the words, answers with less in them. They are drawn by seed.
            With 0, quality is a constant of the question.
        model_under_pressure: What the simulated model does when its prompt says that little time is left, as under the
            policy "aware": "hurries", "panics" or "ignores", with a share of the time: "hurries:0.25". An assumption.
        adoption: Share, from 0 to 1, of the services of the workload "hops" that hold to a deadline that comes with a
            request. Which ones is drawn by seed.
        settings: Settings; those of the environment when left out.
        out: A folder for tables, plots and the summary.
        progress: Called with (runs done, all runs).
        watch: Called with the `runs` table of what is done, now and then while it grows.
        record: A folder for a recording of the study, on the wall clock.
        record_text: Whether the recording keeps responses and digests of requests.
        replay: The folder of a recording to replay in virtual time. It settles everything but budgets, runs,
            alternatives and retries.
        max_requests: The most model requests on the wall clock. At the first request past it no further run begins,
            and runs that need another request are left out. The study is then not complete; its manifest says why.
        max_tokens: The most tokens of model calls on the wall clock, in the same way.
        before_sending: Called, before anything is sent, with what a live endpoint is expected to be sent. Whatever it
            raises ends the study.
        telemetry: Where spans and metrics of the runs go when all are done: `docmind_lab.telemetry.Telemetry`.

    Returns:
        The study: its tables, and what they say.

    Raises:
        ConfigurationError: A value cannot be used.
        RecordError: A folder has no finished index, or no recording that can be read.
        ServiceError: The services do not start.
        KeyboardInterrupt: It was interrupted. The finished runs are in `out` by then, if there is one.
    """
    given = locals()
    request = CompareRequest(**{field.name: given[field.name] for field in dataclasses.fields(CompareRequest)})
    return run_request(
        request,
        settings or Settings(),
        workers=workers,
        out=out,
        progress=progress,
        watch=watch,
        before_sending=before_sending,
        telemetry=telemetry,
    )


def run_request(
    request: CompareRequest,
    settings: Settings,
    *,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    before_sending: BeforeSending | None = None,
    telemetry: RunListener | None = None,
) -> Study:
    """The study of a request. Everything but `request` is as in `compare`, which also lists what is raised."""
    comparison, settings = resolve(request, settings)
    recording = request.recording
    if recording.replay is None:
        recording.require_fit(comparison.clock, comparison.workload, None if out is None else Path(out))
    if before_sending is not None and asks_live_endpoints(comparison, settings):
        before_sending(expected_to_send(comparison, settings))
    return run_comparison(
        comparison,
        settings,
        workers=workers,
        out=out,
        progress=progress,
        watch=watch,
        recording=recording,
        telemetry=telemetry,
    )


def run_comparison(
    comparison: Comparison,
    settings: Settings,
    *,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    recording: RecordingOptions = NO_RECORDING,
    telemetry: RunListener | None = None,
) -> Study:
    """The comparison as a study; arguments as those of `compare`.

    Raises: as `compare`; KeyboardInterrupt once the finished runs are in `out`.
    """
    check_settings(comparison, settings)
    if telemetry is not None:
        telemetry.check(settings)
    settings = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
    is_new = out is not None and not Path(out).exists()
    folder = None if out is None else prepare_folder(out)
    measured: list[MeasuredRun] = []
    next_look_at = 0.0
    interrupted: KeyboardInterrupt | None = None
    said: dict[str, Any] = {}
    use = MachineUse()
    try:
        # Closed by the block, whatever raises in it: services and workers end before the study is made.
        with contextlib.closing(_runs(comparison, settings, workers, folder, recording, said, use)) as arriving:
            for some in arriving:
                measured += some
                if progress is not None:
                    progress(len(measured), comparison.total_runs)
                if watch is not None and time.monotonic() >= next_look_at:
                    watch(to_frame("runs", [item.run for item in measured]))
                    next_look_at = time.monotonic() + _LOOK_EVERY_S
    except KeyboardInterrupt as error:
        interrupted = error
    if "ended_by" in said and not measured:
        raise ConfigurationError(f"{said['ended_by']} before any run was over; allow more")
    complete = interrupted is None and "ended_by" not in said
    said["machine_use"] = use.to_dict(len(measured))
    study = Study.of(measured, comparison_manifest(comparison, settings, complete=complete) | said)
    if missing := not_exercised(comparison.kind.parts, study.events, study.calls):
        study = dataclasses.replace(study, manifest={**study.manifest, **missing})
    if recording.replay is not None:
        # What a replay drew is a matter of its tables and of what was recorded; nobody counts while it goes on.
        account = account_of(study, Recording.load(recording.replay))
        study = dataclasses.replace(study, manifest={**study.manifest, "replayed_calls": account.to_dict()})
    if folder is not None and measured:
        # Function-level: drawing is slow to import and not needed to measure.
        from docmind_lab.analysis.plots.files import save_study  # noqa: PLC0415

        save_study(study, folder)
        CellStore(folder / CELLS).remove()
    if telemetry is not None:
        # Now that nothing is measured any more.
        telemetry.tell(measured, study.manifest)
    if interrupted is not None:
        if folder is not None and is_new and not measured:
            _remove_empty(folder)
        raise interrupted
    return study


def _remove_empty(folder: Path) -> None:
    """Remove a folder in which nothing was saved; one that holds something stays."""
    with contextlib.suppress(OSError):
        CellStore(folder / CELLS).remove()
        folder.rmdir()


def comparison_manifest(comparison: Comparison, settings: Settings, *, complete: bool) -> dict[str, Any]:
    """The manifest of a comparison's study. complete: whether all of its runs are there."""
    return manifest_of(
        comparison.design(),
        settings,
        study_id=comparison.study_id,
        complete=complete,
        systems=systems_said([comparison.workload]),
    )


def _runs(
    comparison: Comparison,
    settings: Settings,
    workers: int | None,
    folder: Path | None,
    recording: RecordingOptions,
    said: dict[str, Any],
    use: MachineUse,
) -> Generator[Sequence[MeasuredRun]]:
    """The runs as they are done. said: is given what the manifest says of a live study's requests, at its end."""
    keep_in = None if folder is None else folder / CELLS
    if comparison.clock == "wall":
        begun = comparison_manifest(comparison, settings, complete=False)
        with LiveStudy.open(recording, begun, _run_ids(comparison), keep_in) as wire:
            with contextlib.closing(runs_on_the_wall_clock(comparison, settings, wire.taps, use)) as runs:
                yield from ((run,) for run in wire.record(runs))
            said |= wire.manifest_entries()
            wire.close({"complete": not wire.cap_reached} | said)
        return
    virtual = runs_in_virtual_time(
        comparison, settings, workers=workers, keep_in=keep_in, replay=recording.replay, use=use
    )
    with contextlib.closing(virtual) as cells:
        yield from cells


def _run_ids(comparison: Comparison) -> list[str]:
    return [order.facts.run_id for order in comparison.orders()]


def check_settings(comparison: Comparison, settings: Settings) -> None:
    """Return if the settings leave the comparison what it is. Raises: ConfigurationError naming one that does not."""
    propagating = [alternative.name for alternative in comparison.alternatives if alternative.propagates]
    if propagating and not settings.agents.enable_deadline_propagation:
        raise ConfigurationError(
            f"agents.enable_deadline_propagation=false would make {', '.join(propagating)} another alternative; "
            "leave it on, or leave the alternative out"
        )
    if settings.database.qdrant_path:
        raise ConfigurationError(
            "database.qdrant_path: a local store has no network and knows no timeouts, so there is nothing to "
            "measure; use database.qdrant_url, or neither for the simulated store"
        )
