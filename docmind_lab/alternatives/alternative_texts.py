"""Finds alternatives by a level, a letter, or the name of a variant, with the policies for their calls.

parse_alternatives("A,B:drain,A+hedge:2s+aware")
"""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Iterable, Sequence
from typing import Any

from docmind_lab.alternatives import ALTERNATIVES, Alternative
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.alternative_catalogue import CATALOGUE, level_and_variant
from docmind_lab.core.deadlines import DEFAULT_POLICY, PropagationPolicy
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_count
from docmind_lab.core.time_policies import TimePolicies


def parse_alternatives(
    chosen: Sequence[str | Alternative] | str | None, retries: int | None = None, *, budgeted_retries: int = 1
) -> tuple[Alternative, ...]:
    """Return the alternatives that names ("A,A+hedge:2s", ["cooperative"]) or instances select; None selects all.

    retries: tries after the first for those that propagate, whose retries are ours; None leaves instances as they are
    and gives named ones `budgeted_retries`.
    Raises: ConfigurationError naming the one that is unknown, the nearest and the known ones.
    """
    if chosen is None:
        items: Sequence[str | Alternative] = list(ALTERNATIVES)
    else:
        items = [part.strip() for part in chosen.split(",") if part.strip()] if isinstance(chosen, str) else chosen
    arms = [_with_retries(_parse_item(item), budgeted_retries) if isinstance(item, str) else item for item in items]
    if retries is not None:
        require_count("retries", retries, 0)
        arms = [_with_retries(alternative, retries) for alternative in arms]
    if len(set(arms)) < len(arms):
        raise ConfigurationError("an alternative is named twice; name each once")
    return tuple(arms)


def with_policies(alternative: Alternative, policies: TimePolicies) -> Alternative:
    """Return the alternative with these policies for the time of its calls, in place of its own.

    Raises: ConfigurationError if it does not propagate its deadline, so that no call knows of the policies.
    """
    takes_limits = isinstance(alternative, Propagation) and alternative.limits_nodes and policies.names == ("limits",)
    if not isinstance(alternative, Propagation) or not (alternative.propagates or takes_limits):
        if policies.text:
            raise ConfigurationError(
                f"{alternative.name} with policies {policies.text}: its calls know of no deadline; name an alternative "
                f"that propagates it, such as A+{policies.text}"
            )
        return alternative
    return _with_policy(alternative, policies=policies)


def and_policies(alternative: Alternative, **policies: Any) -> Alternative:
    """Return the alternative with these policies beside its own; one that is None changes nothing. Raises: as above."""
    changes = {name: policy for name, policy in policies.items() if policy is not None}
    own = getattr(alternative, "policy", DEFAULT_POLICY).policies
    return with_policies(alternative, dataclasses.replace(own, **changes)) if changes else alternative


def require_no_roles(alternatives: Iterable[Alternative]) -> None:
    """Return if a user's graph can have the alternatives, whose calls do not go through the lab's own roles.

    Raises: ConfigurationError naming the policies that need those.
    """
    for alternative in alternatives:
        policy = getattr(alternative, "policy", None)
        text = "" if policy is None else dataclasses.replace(policy.policies, limits=None, wrap_up=None).text
        if text:
            raise ConfigurationError(
                f"{alternative.name}+{text}: these policies are for the model calls of the lab's own roles, and none "
                "of a graph of your own goes through them; leave them out"
            )


def _parse_item(text: str) -> Alternative:
    name, _, policies = text.partition("+")
    alternative = _parse_name(name.strip())
    return with_policies(alternative, TimePolicies.parse(policies)) if policies else alternative


def _parse_name(text: str) -> Alternative:
    level, variant = level_and_variant(text)
    options = dict(CATALOGUE[level].variants[variant]) if variant else {}
    kind: Any = pkgutil.resolve_name(CATALOGUE[level].home)
    own = {option.name for option in dataclasses.fields(kind)}
    of_policy = {name: value for name, value in options.items() if name not in own}
    policy = {"policy": PropagationPolicy(**of_policy)} if of_policy else {}
    named: Alternative = kind(**{name: value for name, value in options.items() if name in own}, **policy)
    return named


def _with_retries(alternative: Alternative, retries: int) -> Alternative:
    if not isinstance(alternative, Propagation) or not alternative.propagates:
        return alternative
    return _with_policy(alternative, retries=retries)


def _with_policy(alternative: Any, **changes: Any) -> Alternative:
    changed: Alternative = dataclasses.replace(alternative, policy=dataclasses.replace(alternative.policy, **changes))
    return changed
