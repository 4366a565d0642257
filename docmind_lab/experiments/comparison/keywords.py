"""`compare`: the same questions under every alternative, measured, as a study."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from docmind_lab.alternatives import Alternative
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.analysis.study import Study
from docmind_lab.core.budgets import Budget
from docmind_lab.core.charges import CpuCharge
from docmind_lab.core.clock import ClockName
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.asked import UNSAID_CORPUS, UNSAID_SEED, UNSAID_WORKLOAD, Asked
from docmind_lab.experiments.comparison.asking import comparison_of
from docmind_lab.experiments.comparison.run import Progress, RunListener, Watch, run_comparison
from docmind_lab.experiments.comparison.sending import asks_live_endpoints, expected_to_send
from docmind_lab.experiments.recordings.choices import Kept
from docmind_lab.services.faults import Fault
from docmind_lab.workloads.own import Inputs, Services

BeforeSending = Callable[[str], None]


def compare(
    decision_timeout_s: float | None = None,
    runs: int | None = None,
    seed: int = UNSAID_SEED,
    *,
    alternatives: Sequence[str | Alternative] | str | None = None,
    profile: str | LatencyProfile | None = None,
    fault: Sequence[str | Fault] | str = (),
    stops_on_disconnect: bool = True,
    retries: int | None = None,
    router_injection: bool | None = None,
    budget: Budget | None = None,
    workload: str = UNSAID_WORKLOAD,
    documents: str | os.PathLike[str] = UNSAID_CORPUS,
    questions: str | os.PathLike[str] | None = None,
    graph: Any = None,
    inputs: Inputs | None = None,
    deadline_key: str = DEADLINE_KEY,
    services: Services = "simulated",
    clock: ClockName | None = None,
    workers: int | None = None,
    side_by_side: int | None = None,
    cpu_charge: CpuCharge = 0.0,
    model_variation: float = 0.0,
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
    """The same questions under every alternative.

        study = dl.compare(decision_timeout_s=20, runs=40, seed=7)
        study                                   # a table, and what it says
        dl.compare(fault="hang", alternatives="A,B,C")
        dl.compare(clock="wall")                # over sockets, in real time
        dl.compare(graph=my_graph, inputs=["…"])    # your own graph; docs/own-graph.md
        dl.compare(documents="papers", questions="questions.jsonl")    # your own documents; docs/own-documents.md
        dl.compare(clock="wall", record="monday")   # then dl.compare(replay="monday"); docs/own-endpoint.md

    decision_timeout_s: the budget of each run, seconds; 20, on the wall clock 2. runs: questions asked of each
    alternative; 40, on the wall clock 8. alternatives: levels, letters ("A"), variants ("A:per_read", "B:naive") or
    instances; None for all. profile: a latency profile or its name; "heavy_tail/3", on the wall clock "typical/6".
    fault: one or several, as `services.faults` writes them. retries: tries after the first, of whoever retries under
    an alternative; None leaves the openai client its own 2. router_injection: retrieval asks a router engine first, as
    ADR-056 has it; None for what the settings say. budget: tokens, calls and cost of each run, enforced where the
    deadline is propagated and measured everywhere; its `time_s` is the decision timeout by another name.
    workload: the system under the deadline, one of `workloads.WORKLOADS`; questions and defaults here are those of
    "supervisor", DocMind itself. documents: "language_reference" with its forty questions, "handbook" with twelve,
    which is the same text in every Python, or a folder that `docmind-lab index` has indexed. questions: a file of your
    own to it, .jsonl, .csv or .json; None for those that come with the documents, which a folder's do not.
    graph: a compiled LangGraph graph, a function without arguments that makes one, or "module:attribute", which worker
    processes can find too; in place of a workload. inputs: a list of its inputs, or a file with one in each line.
    deadline_key: the key of the graph's input that takes the deadline, if it has one. services: "simulated" (whatever
    host the graph names, simulated services answer: no key is used and nothing is spent) or "own" (its requests go
    where its code sends them; on the wall clock only).
    clock: "virtual" (the same stack in simulated time: no waiting, the same tables every time) or "wall"; None for
    wall if the settings name a live endpoint, else virtual. workers: processes in virtual time; None for one on each
    core, or none for a few runs. side_by_side: runs under way at once on the wall clock; 1 measures coordination
    overhead too; None for 4, and for 1 with a live endpoint, which all runs share, or with a graph of your own, whose
    nodes may block the event loop that runs share. Slots of a profile are of each run.
    cpu_charge: CPU seconds that each request to a model or a store costs in virtual time, where Python's own work takes
    no time otherwise; "measured" for what it took, by which tables differ from one repeat to the next.
    model_variation: share of the simulated model's decisions that go another way than the best, drawn by seed: wrong
    hand-overs, searches for a part of the words, answers with less in them; 0 makes quality a constant of the question.
    out: a folder for tables, plots and report. progress: called with (done, all). watch: called with the
    `runs` table of what is done, now and then while it grows.
    record: a folder for a recording of the study on the wall clock; record_text: with requests' digests and responses.
    replay: the folder of a recording, which settles all but budgets, runs, alternatives and retries; in virtual time.
    max_requests, max_tokens: of model calls on the wall clock. At the first request past one no further run begins, and
    runs that need another request are left out; the study is then not complete, and its manifest says why.
    before_sending: called with what a live endpoint is expected to be sent, before it is; whatever it raises ends it.
    telemetry: where spans and metrics of the runs go when all are done; None for nowhere.

    Interrupted, it raises KeyboardInterrupt after saving the finished runs to `out`, if there is one.
    Raises: ConfigurationError for a value that cannot be used; RecordError for a folder without a finished index;
    ServiceError if the services do not start.
    """
    asked = Asked(
        decision_timeout_s=decision_timeout_s,
        runs=runs,
        seed=seed,
        alternatives=alternatives,
        profile=profile,
        fault=fault,
        stops_on_disconnect=stops_on_disconnect,
        retries=retries,
        router_injection=router_injection,
        budget=budget,
        workload=workload,
        documents=documents,
        questions=questions,
        graph=graph,
        inputs=inputs,
        deadline_key=deadline_key,
        services=services,
        clock=clock,
        side_by_side=side_by_side,
        cpu_charge=cpu_charge,
        model_variation=model_variation,
    )
    kept = Kept.of(record, record_text, replay, max_requests, max_tokens)
    comparison, settings = comparison_of(asked, kept, settings or Settings())
    if kept.replay is None:
        kept.require_fit(comparison.clock, comparison.workload, None if out is None else Path(out))
    if before_sending is not None and asks_live_endpoints(comparison, settings):
        before_sending(expected_to_send(comparison, settings))
    return run_comparison(
        comparison, settings, workers=workers, out=out, progress=progress, watch=watch, kept=kept, telemetry=telemetry
    )
