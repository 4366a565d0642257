"""Alternatives by what people call them: a level, a letter, or a variant of one."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Sequence
from typing import Any

from docmind_lab.alternatives import (
    ALTERNATIVES,
    Alternative,
    AsyncCancellation,
    Cooperative,
    HardTimeout,
    Hybrid,
    Native,
    StopFlag,
)
from docmind_lab.alternatives.allocation import Equal, ReserveFirst
from docmind_lab.alternatives.fake_timeout import FakeTimeout
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.deadlines import PropagationPolicy
from docmind_lab.core.errors import ConfigurationError

VARIANTS: dict[tuple[str, str], Callable[[], Alternative]] = {
    ("cooperative", "per_read"): lambda: Cooperative(PropagationPolicy(cap="per_read")),
    ("cooperative", "equal"): lambda: Cooperative(PropagationPolicy(allocation=Equal())),
    ("cooperative", "reserve_first"): lambda: Cooperative(PropagationPolicy(allocation=ReserveFirst())),
    ("cooperative", "unpropagated"): lambda: Cooperative(propagate=False),
    ("cooperative", "uncommitted"): lambda: Cooperative(PropagationPolicy(commits_cut_agents=False)),
    ("hard_timeout", "drain"): lambda: HardTimeout(drain_on_timeout=True),
    ("hard_timeout", "naive"): lambda: HardTimeout(naive=True),
    ("hard_timeout", "propagate"): lambda: HardTimeout(propagate=True),
    ("hard_timeout", "streamed"): lambda: HardTimeout(streamed=True),
    ("async_cancellation", "propagate"): lambda: AsyncCancellation(propagate=True),
    ("stop_flag", "interrupt"): lambda: StopFlag(interrupt=True),
    ("stop_flag", "propagate"): lambda: StopFlag(propagate=True),
    ("hybrid", "unpropagated"): lambda: Hybrid(propagate=False),
    ("native", "per_step"): lambda: Native(per_step=True),
    ("native", "propagate"): lambda: Native(propagate=True),
}


def parse_alternatives(
    chosen: Sequence[str | Alternative] | str | None, retries: int | None = None, *, budgeted_retries: int = 1
) -> tuple[Alternative, ...]:
    """Alternatives from names ("A,B:naive", ["cooperative"]), instances, or None for all of them, in the order given.

    retries: tries after the first for those that propagate, whose retries are ours; None leaves instances as they are
    and gives named ones `budgeted_retries`.
    Raises: ConfigurationError naming the one that is unknown, the nearest and the known ones.
    """
    if chosen is None:
        items: Sequence[str | Alternative] = list(ALTERNATIVES)
    else:
        items = [part.strip() for part in chosen.split(",") if part.strip()] if isinstance(chosen, str) else chosen
    found = [_with_retries(_named(item), budgeted_retries) if isinstance(item, str) else item for item in items]
    if retries is not None:
        if retries < 0:
            raise ConfigurationError(f"retries must be 0 or more, not {retries}")
        found = [_with_retries(alternative, retries) for alternative in found]
    if len(set(found)) < len(found):
        raise ConfigurationError("an alternative is named twice; name each once")
    return tuple(found)


def _named(text: str) -> Alternative:
    if text.lower() == FakeTimeout.name:  # a negative control, in no default
        return FakeTimeout()
    base, _, variant = text.partition(":")
    by_letter = {kind.letter.lower(): name for name, kind in ALTERNATIVES.items()}
    name = by_letter.get(base.lower(), base.lower())
    if name not in ALTERNATIVES:
        near = difflib.get_close_matches(name, ALTERNATIVES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        known = ", ".join(f"{name} ({kind.letter})" for name, kind in ALTERNATIVES.items())
        raise ConfigurationError(f"unknown alternative {text!r}; {hint}the alternatives are {known}")
    if not variant:
        return ALTERNATIVES[name]()
    if (name, variant) not in VARIANTS:
        known = ", ".join(f"{base}:{option}" for base, option in VARIANTS)
        raise ConfigurationError(f"unknown variant {text!r}; the variants are {known}")
    return VARIANTS[name, variant]()


def _with_retries(alternative: Alternative, retries: int) -> Alternative:
    if not isinstance(alternative, Propagation) or not alternative.propagates:
        return alternative
    dataclass: Any = alternative
    replaced: Alternative = dataclasses.replace(
        dataclass, policy=dataclasses.replace(alternative.policy, retries=retries)
    )
    return replaced
