"""Observed calls, one row each, whatever they were read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError

COLUMNS: Final = ("kind", "complete", "latency_s", "first_token_s", "output_tokens", "model", "session")


@dataclass(frozen=True, eq=False)
class ObservedCalls:
    """Calls as a fit takes them.

    frame: one row per call. Columns: kind (str: llm or retrieval), complete (bool: False is a call that was cut, by a
    timeout, a cancellation or an error, after latency_s), latency_s (from the start of service), first_token_s (NaN:
    none had come, or it was not recorded), output_tokens (NaN: not known; of a cut call those that had come), model
    (str), session (str: the run or conversation that it belongs to; empty: not known). source: what it was read from,
    for descriptions. notes: what was left out or assumed in reading it.
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, Any], source: str, notes: tuple[str, ...] = ()) -> ObservedCalls:
        """Checked calls; rows without a latency are left out and counted in a note.

        Raises: ConfigurationError for negative or infinite numbers, and for a first token after the end.
        """
        frame = pd.DataFrame({"session": "", **{name: columns[name] for name in COLUMNS if name in columns}})[
            [*COLUMNS]
        ]
        for name in ("latency_s", "first_token_s", "output_tokens"):
            values = frame[name].to_numpy(dtype="float64")
            bad = (values < 0) | np.isinf(values)
            if bad.any():
                raise ConfigurationError(
                    f"{source}: {name} is {values[bad][0]:g} in {bad.sum()} of {len(values)} rows; "
                    "it must be finite and not negative: check the clock that measured it, or leave such rows out"
                )
        # Clocks are read at two places: a microsecond, or a millionth, is no contradiction.
        late = (frame["first_token_s"] > frame["latency_s"] * (1 + 1e-6) + 1e-6).to_numpy()
        if late.any():
            row = frame[late].iloc[0]
            raise ConfigurationError(
                f"{source}: first_token_s ({row['first_token_s']:g} s) is longer than latency_s "
                f"({row['latency_s']:g} s) in {late.sum()} rows; both count from the request: check their units"
            )
        known = frame["latency_s"].notna()
        if not known.all():
            notes = (*notes, f"{(~known).sum()} rows without a latency were left out.")
        return cls(frame[known].reset_index(drop=True), source, notes)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{(self.frame['kind'] == kind).sum()} {kind}" for kind in ("llm", "retrieval"))
        return f"ObservedCalls of {self.source}: {kinds}; {(~self.frame['complete']).sum()} cut"

    def of_kind(self, kind: str) -> pd.DataFrame:
        """The rows of one kind."""
        return self.frame[self.frame["kind"] == kind]

    def of_model(self, model: str | None) -> ObservedCalls:
        """The calls of one model, and all searches; None is every model, with a note where there are several.

        Raises: ConfigurationError for a model that is not there.
        """
        llm = self.frame["kind"] == "llm"
        models = sorted(set(self.frame.loc[llm, "model"]) - {""})
        if model is None:
            mixed = f"Several models are mixed: {', '.join(models)}."
            return replace(self, notes=(*self.notes, mixed)) if len(models) > 1 else self
        if model not in models:
            known = ", ".join(models) or "none; map a column to model"
            raise ConfigurationError(f"{self.source}: no call is of the model {model!r}; there are {known}")
        kept = self.frame[~llm | (self.frame["model"] == model)].reset_index(drop=True)
        return ObservedCalls(kept, f"{self.source}, model {model}", self.notes)
