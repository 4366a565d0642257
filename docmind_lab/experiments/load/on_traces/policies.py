"""Queue policies of a model server: which of the waiting calls is served next, and which is refused.

    first_come              in the order of their coming
    deadline_first          the call whose query has the earliest deadline
    drop_expired            first come, but a call whose query's deadline has passed is refused when its turn comes
    admit_by_prediction     first come, but the first call of a query is refused when the query would end too late

A server knows the deadline of a query where its client sends the time left. Without that, only `first_come` is
possible.
"""

from __future__ import annotations

from typing import Final

from docmind_lab.core.errors import ConfigurationError

POLICIES: Final = ("first_come", "deadline_first", "drop_expired", "admit_by_prediction")
"""The names of the policies."""


def check_policy(name: str) -> str:
    """Return the name of a policy. Raises: ConfigurationError for another name."""
    if name not in POLICIES:
        raise ConfigurationError(f"queue policy must be one of {', '.join(POLICIES)}, not {name!r}")
    return name
