"""When a caller counts as late, and how long E waits past the deadline."""

from typing import Final

# A caller who asked for 2 s and waits 2.15 s has been kept to the deadline, as far as a wall clock on a shared machine
# can tell; more than that is an alternative that does not hold.
HELD_WITHIN_S: Final = 0.15
"""Seconds after the deadline within which a caller must be back to count as on time."""

# A call that is cut at the deadline unwinds through its graph within this on a busy machine; only what has no cap of
# its own (a node that waits without a client) is still there afterwards, and its step is cancelled.
STEP_SLACK_S: Final = 0.05
"""Seconds after the deadline at which E cancels the step that is still at work."""

# A node that blocks the event loop hears no cancellation; the caller leaves it behind after as much again.
RETURN_SLACK_S: Final = 0.1
"""Seconds after the deadline at which the caller of E leaves, whatever is still at work."""
