"""`Playing`: one plan under way at the wall door."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from docmind_lab.services.log import RequestRow
from docmind_lab.services.plan import Plan


@dataclass(eq=False)
class Playing:
    """One plan under way. others: model calls beside it as it starts. stopped: the server knows its client left."""

    plan: Plan
    row: RequestRow
    starts_at: float
    others: int = 0
    may_start: asyncio.Event = field(default_factory=asyncio.Event)
    client_gone: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    ends_at_write: bool = False
    is_generating: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ends(self) -> list[asyncio.Event]:
        """What ends a request before its plan does."""
        return [self.ended, self.stopped]
