"""The tables of each workload under each alternative are those they were, to the last bit of each value.

A refactoring changes none of them. A change of behaviour that is meant does. This writes the digests anew, and the
commit that changes them says why:

    PYTHONPATH=tests/support python tests/batch/test_table_digests.py
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from often import often
from same_tables_program import digest, study

from docmind_lab.findings.study import Study

DIGESTS = Path(__file__).with_name("table_digests.json")
ALTERNATIVES = "unguarded,A,B,C,D,E,F"
WORKLOADS = ("supervisor", "research", "staged", "peers", "hops")


def digests_of(workload: str) -> dict[str, str]:
    whole = study(0, ALTERNATIVES, 2, workload)
    found = {}
    for alternative, runs in whole.runs.groupby("alternative", observed=True):
        ids = set(runs["run_id"].astype("str"))
        calls, events = (table[table["run_id"].astype("str").isin(ids)] for table in (whole.calls, whole.events))
        found[str(alternative)] = digest(Study(runs, calls, events))
    return dict(sorted(found.items()))


# Research takes as long as all others.
@pytest.mark.parametrize("workload", often(WORKLOADS, *(each for each in WORKLOADS if each != "research")))
def test_each_alternative_has_the_tables_that_were_committed(workload: str) -> None:
    assert digests_of(workload) == json.loads(DIGESTS.read_text(encoding="utf-8"))[workload]


if __name__ == "__main__":
    DIGESTS.write_text(json.dumps({name: digests_of(name) for name in WORKLOADS}, indent=2) + "\n", encoding="utf-8")
