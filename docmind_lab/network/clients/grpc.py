"""Finds the gRPC channels of this process: they have connections of their own, so no cap counts their requests."""

from __future__ import annotations

import gc
import sys
from typing import Any, Final

# Where OpenTelemetry's collectors listen: what goes there is no request of an agent.
_TELEMETRY_PORT: Final = ":4317"


def grpc_targets() -> list[str]:
    """Return what the open gRPC channels of this process lead to, each once, but for telemetry collectors."""
    grpc: Any = sys.modules.get("grpc")
    if grpc is None:
        return []
    kinds = (grpc.Channel, grpc.aio.Channel)
    # By type: isinstance would ask proxies for their class, and some then import what they stand for.
    inner = [each._channel for each in gc.get_objects() if issubclass(type(each), kinds) and hasattr(each, "_channel")]
    targets = {_target_of(channel) for channel in inner if _is_open(channel)}
    return sorted(target for target in targets if not target.endswith(_TELEMETRY_PORT))


def _is_open(channel: Any) -> bool:
    try:
        channel.check_connectivity_state(False)
    except Exception:  # noqa: BLE001 - a closed channel raises ValueError or an error of gRPC's own
        return False
    return True


def _target_of(channel: Any) -> str:
    # A method of a channel for threads, an attribute of one for event loops.
    target = channel.target() if callable(channel.target) else channel.target
    return str(target.decode() if isinstance(target, bytes) else target)
