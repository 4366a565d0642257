"""Second budgets as they are written in a study: `budget_tokens`, `budget_calls`, `budget_cost`, and a `price`.

second_budget(calls=12)                                     # Budget(calls=12)
second_budget(cost=0.02, price="0.15/0.60", named="load")   # said of a table of a study file: load.budget_cost
"""

from __future__ import annotations

from typing import Final, Literal

from docmind_lab.core.budgets import NO_BUDGETS, Budget, Kind, Price
from docmind_lab.core.errors import ConfigurationError

NoLimit = Literal["none"]
"""The level of a factor that sets no limit: `NO_BUDGETS`."""

FIELDS: Final[dict[str, Kind]] = {"budget_tokens": "tokens", "budget_calls": "calls", "budget_cost": "cost"}
"""Field of a study → the budget that it sets."""


def second_budget(
    tokens: int | NoLimit | None = None,
    calls: int | NoLimit | None = None,
    cost: float | NoLimit | None = None,
    price: str | None = None,
    *,
    named: str = "factors",
) -> Budget:
    """The budget with these limits; "none" and None set none. named: the table that the fields stand in.

    Raises: ConfigurationError naming the field that cannot be used, and what can.
    """
    said: dict[Kind, object] = {"tokens": tokens, "calls": calls, "cost": cost}
    limits = {kind: None if value == NO_BUDGETS else value for kind, value in said.items()}
    if limits["cost"] is not None and price is None:
        raise ConfigurationError(
            f'{named}.budget_cost: what tokens cost is not said; give price = "INPUT/OUTPUT", for a million tokens of '
            'each, such as "0.15/0.60"'
        )
    try:
        known = None if price is None else Price.parse(price)
        return Budget(**limits, price=known)  # type: ignore[arg-type]
    except ConfigurationError as error:
        message = str(error)
        for field, kind in FIELDS.items():
            message = message.replace(f"budget.{kind} ", f"{named}.{field} ")
        raise ConfigurationError(message) from error
