"""The table `peer_tasks`: one row for each call to a peer, made of the run's events and of the service's rows."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.analysis.tables.frames import ExtraTable, typed_rows
from docmind_lab.analysis.tables.records import ALTERNATIVE, RUN_ID, Column
from docmind_lab.core.levels import NAN
from docmind_lab.workloads.peers.correlation import PEER_OUTCOMES
from docmind_lab.workloads.peers.timeouts import LIMITS

_COLUMNS = (
    RUN_ID,
    Column("call_id", "text", "The call to the peer; key of `calls` with the run."),
    ALTERNATIVE,
    Column("peer", "level", "Who was asked."),
    Column("sent_at_s", "float", "When it was asked."),
    Column("outcome", "level", "What was decided first; pending: nothing by the horizon.", (*PEER_OUTCOMES, "pending")),
    Column("limit", "level", "The timeout that fired, of a call that timed out.", ("", *LIMITS)),
    Column("latency_s", "float", "From sending to the decision; NaN while pending."),
    Column("extensions", "int", "How often a sign of life put the timeout off."),
    Column("late_responses", "int", "Answers that came after the call was decided without one."),
    Column("duplicate_responses", "int", "Answers that came after the call had its answer."),
    Column("late_by_s", "float", "How long after the decision the last of these came; NaN without one."),
    Column("cancel_outcome", "level", "What came of the cancel; empty when none was sent."),
    Column("cancel_delivered_s", "float", "From the decision until the peer's server had the cancel (server rows)."),
    Column("cancel_latency_s", "float", "From sending the cancel to its answer, or to the end of its time."),
    Column("peer_worked_s", "float", "Seconds that the peer's server was busy with the task by the horizon."),
    Column("peer_wasted_s", "float", "The part of these of which nothing came: all of a call that was not completed."),
)


_Said = tuple[str, str, float, Mapping[str, Any]]
"""An event of a call: its name, the peer, when, and its detail."""


def _derived(events: pd.DataFrame, runs: pd.DataFrame, calls: pd.DataFrame) -> pd.DataFrame:
    """One row for each call to a peer, in the order of the events."""
    horizon_of = dict(zip(runs["run_id"], runs["horizon_s"], strict=True))
    alternative_of = dict(zip(runs["run_id"], runs["alternative"], strict=True))
    on_server = calls[(calls["kind"] == "peer") & (calls["seen_from"] == "server")]
    keys = zip(on_server["run_id"], on_server["call_id"], strict=True)
    spans = zip(on_server["started_at_s"], on_server["ended_at_s"], strict=True)
    begun = dict(zip(keys, spans, strict=True))
    of_peers = events[events["event"].astype("str").str.startswith("peer_")]
    told: dict[tuple[str, str], list[_Said]] = defaultdict(list)
    columns = (of_peers[name] for name in ("run_id", "event", "role", "at_s", "detail"))
    for run_id, event, role, at_s, text in zip(*columns, strict=True):
        detail = json.loads(text)
        if "call" in detail:
            told[run_id, detail["call"]].append((str(event), str(role), at_s, detail))
    rows = [
        _row(run_id, call_id, said, begun, float(horizon_of[run_id])) | {"alternative": alternative_of[run_id]}
        for (run_id, call_id), said in told.items()
        if any(event == "peer_sent" for event, *_ in said)
    ]
    return typed_rows(_COLUMNS, rows)


def _row(
    run_id: str,
    call_id: str,
    said: list[_Said],
    begun: Mapping[tuple[str, str], tuple[float, float]],
    horizon_s: float,
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run_id": run_id,
        "call_id": call_id,
        "outcome": "pending",
        "limit": "",
        "latency_s": NAN,
        "extensions": 0,
        "late_responses": 0,
        "duplicate_responses": 0,
        "late_by_s": NAN,
        "cancel_outcome": "",
        "cancel_delivered_s": NAN,
        "cancel_latency_s": NAN,
    }
    decided_at_s = NAN
    # Events of one instant stand in no particular order, so nothing here depends on one.
    for event, peer, at_s, detail in said:
        if event == "peer_sent":
            row |= {"peer": peer, "sent_at_s": at_s}
        elif event == "peer_extended":
            row["extensions"] = max(row["extensions"], detail["extensions"])
        elif event == "peer_decided":
            row |= {"outcome": detail["outcome"], "limit": detail["limit"], "latency_s": detail["after_s"]}
            decided_at_s = at_s
        elif event == "peer_too_late":
            row[f"{detail['kind']}_responses"] += 1
            row["late_by_s"] = np.fmax(row["late_by_s"], detail["late_by_s"])
        elif event == "peer_cancel_ended":
            row |= {"cancel_outcome": detail["outcome"], "cancel_latency_s": detail["latency_s"]}
    cancels = [detail["cancel"] for event, _, _, detail in said if event == "peer_cancel_sent"]
    if cancels and (run_id, cancels[0]) in begun:
        row["cancel_delivered_s"] = begun[run_id, cancels[0]][0] - decided_at_s
    started_at_s, ended_at_s = begun.get((run_id, call_id), (NAN, NAN))
    # Whoever is still at work at the horizon has worked until then at least.
    worked_s = (horizon_s if math.isnan(ended_at_s) else ended_at_s) - started_at_s
    return row | {"peer_worked_s": worked_s, "peer_wasted_s": 0.0 if row["outcome"] == "completed" else worked_s}


PEER_TASKS = ExtraTable(
    name="peer_tasks",
    meaning="One call to a peer agent: what was decided, by which limit, and what the peer did afterwards.",
    columns=_COLUMNS,
    derive=_derived,
)
