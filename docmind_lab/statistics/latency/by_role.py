"""What says which latencies to draw: a profile, the name of one, or profiles by role."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.latency.profile import LatencyProfile

EVERY_ROLE: Final = "*"
"""The roles without a profile of their own, in what `latency_profile` reads."""

ProfileChoice = str | LatencyProfile | Mapping[str, str | LatencyProfile]
"""What says which latencies to draw: a profile, its name, or profiles by role."""


def latency_profile(chosen: ProfileChoice | Sequence[str], rest: str = "typical") -> LatencyProfile:
    """Return the latency profile that a choice means, with those of single roles in it.

        latency_profile({"*": "typical", "judge": "mine-judge.json"})
        latency_profile("typical,judge=mine-judge.json")
        latency_profile(["typical", "judge=mine-judge.json"])

    chosen: a profile, its name, or profiles by role; "*" is every other role. rest: name of the profile of the roles
    that nothing is said of. Raises: ConfigurationError (a name is unknown, or a role has two profiles).
    """
    if isinstance(chosen, LatencyProfile):
        return chosen
    by_role = dict(chosen) if isinstance(chosen, Mapping) else _profiles_by_role(chosen)
    named = {EVERY_ROLE: rest} | by_role
    made = {role: LatencyProfile.named(one) if isinstance(one, str) else one for role, one in named.items()}
    of_all = made.pop(EVERY_ROLE)
    for role, one in made.items():
        if one.of_roles:
            raise ConfigurationError(f"profile {role}={one.level}: a role has one profile; name one without a comma")
    return replace(of_all, of_roles={**of_all.of_roles, **made}) if made else of_all


def require_roles(profile: LatencyProfile, known: Collection[str]) -> None:
    """Return if each role that has a profile of its own is among the known ones; else raise ConfigurationError."""
    for role, one in profile.of_roles.items():
        if role not in known:
            raise ConfigurationError(
                f"profile {role}={one.name}: no role is {role!r}; name one of {', '.join(known)}, or leave {role}= out "
                "for all of them"
            )


def _profiles_by_role(named: str | Sequence[str]) -> dict[str, str]:
    """Read "typical,judge=mine.json", or its parts."""
    result: dict[str, str] = {}
    for part in [part for text in ([named] if isinstance(named, str) else named) for part in text.split(",")]:
        # The options of a profile have such signs too: typical?correlation=0.5.
        before, sign, after = part.partition("=")
        role, name = (before.strip(), after.strip()) if sign and "?" not in before else (EVERY_ROLE, part.strip())
        if role in result:
            who = "every role" if role == EVERY_ROLE else f"role {role}"
            raise ConfigurationError(
                f"profile: {who} has two, {result[role]} and {name}; name one, and others as ROLE=NAME"
            )
        result[role] = name
    return result
