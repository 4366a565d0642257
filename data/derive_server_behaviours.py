"""Write the server behaviours that ship with the package, from the trials in data/server_probes/.

    python data/derive_server_behaviours.py

Each file of trials was written by `docmind-lab probe server`, with the command in its row below.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.experiments.probe import ServerProbe, Trial, Undisturbed

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "docmind_lab" / "core" / "data" / "server_behaviours"
SERVERS: dict[str, dict[str, Any]] = {
    "llama-cpp-2026.10": {
        "server": "llama.cpp's server in xllamacpp 2026.10.11549, one slot, one thread, random weights (TinyServer)",
        "measured_on": "2026-11-23",
        "command": "docmind-lab probe server URL --repeats 2 --seconds 1.5 --max-tokens 3000 --yes",
        "limits": {
            "max_tokens": "honoured",
            "t_max_predict_ms": "ignored",
            "x-envoy-expected-rq-timeout-ms": "ignored",
        },
    }
}


def behaviour_of_trials(name: str) -> ServerBehaviour:
    """The behaviour that a server's trials amount to.

    Args:
        name: Of the file of trials, without its suffix.
    """
    about = SERVERS[name]
    rows = pd.read_csv(HERE / "server_probes" / f"{name}.csv", keep_default_na=False, na_values=[""]).astype(object)
    rows = rows.where(rows.notna(), None)
    trials = tuple(Trial(**{**row, "note": row["note"] or ""}) for row in rows.to_dict("records"))
    usual = Undisturbed(0, 0, 0, 0.0, 0.0, 0.0, (0.0,), 0.0)
    probe = ServerProbe(about["server"], "URL", usual, trials)
    return probe.behaviour(name, about["command"]).model_copy(
        update={each: about[each] for each in ("measured_on", "limits")}
    )


if __name__ == "__main__":
    for server in SERVERS:
        (PACKAGE / f"{server}.json").write_text(behaviour_of_trials(server).to_json(), encoding="utf-8")
