"""An alternative as production runs it, to be measured like any other: `compare --enforced`."""

from __future__ import annotations

from dataclasses import dataclass

from docmind_lab.alternatives.base import AroundAlternative, Inputs, Outcome, RunLog, Runnable
from docmind_lab.alternatives.enforcement.enforced_agent import EnforcedAgent
from docmind_lab.core.deadlines import Deadline


@dataclass(frozen=True)
class Enforced(AroundAlternative):
    """Runs a user's graph through `enforce`, and returns the alternative's own outcome."""

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph as `EnforcedAgent.invoke` does."""
        agent = EnforcedAgent(runnable, deadline.limit_s, self.alternative, deadline_key=_deadline_key(runnable))
        return agent.outcome_of(agent.call_for(None, deadline=deadline), inputs, None, recorder)


def _deadline_key(runnable: Runnable) -> str:
    """Return the key of the graph's input that takes the deadline; empty for none."""
    doorways = getattr(runnable, "binding", {}).get("doorways", ())
    return next((key for doorway in doorways if (key := getattr(doorway, "state_key", ""))), "")
