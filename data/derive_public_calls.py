"""Keep of the public measurements what a promise about limits of calls is judged by: durations, and whose they are.

    python data/derive_public_calls.py DIR_WITH_CSVS

Writes `tests/calibration/public_calls.parquet`, which `data/README.md` describes. The same input gives the same rows.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

OUTPUT = Path(__file__).resolve().parent.parent / "tests" / "calibration" / "public_calls.parquet"
# Of 2023, the endpoints that profiles rest on (derive_profiles.py): all of their rows are sound.
ENDPOINTS = ("groq_70b", "fireworks_70b", "replicate_70b", "anyscale_7b")


def main(folder: Path) -> None:
    """Write the table: source, unit (session, or request), total_s, first_token_s (NaN: not recorded)."""
    sessions = pd.read_csv(folder / "claude_code_sessions_2026.csv.gz", usecols=["session", "api_time_s"])
    sessions = sessions[sessions["api_time_s"] > 0]
    parts = [
        pd.DataFrame(
            {
                "source": "coding_2026",
                "unit": pd.factorize(sessions["session"])[0],
                "total_s": sessions["api_time_s"],
                "first_token_s": np.nan,
            }
        )
    ]
    requests = pd.read_csv(folder / "llmperf_2023_requests.csv")
    for endpoint in ENDPOINTS:
        rows = requests[(requests["endpoint"] == endpoint) & requests["error_code"].isna()]
        times = {"total_s": rows["end_to_end_latency_s"], "first_token_s": rows["ttft_s"]}
        parts.append(pd.DataFrame({"source": endpoint, "unit": np.arange(len(rows)), **times}))
    frame = pd.concat(parts, ignore_index=True)
    frame = frame.astype({"unit": "int32", "total_s": "float32", "first_token_s": "float32", "source": "category"})
    frame.to_parquet(OUTPUT, compression="zstd", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
