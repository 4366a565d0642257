"""The plugin of pytest that an installed docmind_lab brings: tests in virtual time, and its assertions as fixtures.

    @pytest.mark.virtual_time
    async def test_a_slow_call_is_cut():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(60), timeout=20)   # takes no time

It imports what it needs when a test uses it, so that a test run that does not pays nothing for it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from docmind_lab.virtual_time import VirtualClock

MARKER = "virtual_time"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, for `--strict-markers` and `pytest --markers`."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(seed=None, horizon_s=86400, stall_after_s=10, cpus=8): runs the test, threads and asyncio included, "
        "on a virtual clock, where waits take no time; the arguments are those of docmind_lab's VirtualClock",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have a test with the marker run on a virtual clock, in place of what pytest and its other plugins do."""
    if item.get_closest_marker(MARKER) is None:
        return
    # Not by the hook pytest_pyfunc_call: plugins for asyncio put functions of their own in place of tests before it.
    item.runtest = lambda: _run(item)  # type: ignore[method-assign]


def _run(item: pytest.Item) -> None:
    __tracebackhide__ = True
    if not isinstance(item, pytest.Function) or hasattr(item.cls, "assertEqual"):
        pytest.fail(f"{MARKER} is for functions and methods of pytest, not of unittest: {item.nodeid}", pytrace=False)
    arguments = {name: item.funcargs[name] for name in inspect.signature(item.obj).parameters if name in item.funcargs}
    clock: Any = item.funcargs.get("virtual_clock") or _clock_of(item)
    run = clock.run_async if inspect.iscoroutinefunction(item.obj) else clock.run
    run(item.obj, **arguments)


def _clock_of(item: pytest.Item) -> VirtualClock:
    from docmind_lab.virtual_time import VirtualClock  # noqa: PLC0415 - only where a test uses it

    options: dict[str, Any] = {}
    for marker in item.iter_markers(MARKER):
        options = {**inspect.signature(VirtualClock).bind_partial(*marker.args, **marker.kwargs).arguments, **options}
    return VirtualClock(**options)


@pytest.fixture
def virtual_clock(request: pytest.FixtureRequest) -> VirtualClock:
    """Return the clock of a test that has the marker; otherwise a new one, whose `run` takes a function."""
    return _clock_of(request.node)


@pytest.fixture
def assert_keeps_deadline() -> Any:
    """Return `docmind_lab.testing.assert_keeps_deadline`: a graph keeps its deadline under an alternative at least."""
    from docmind_lab.experiments import assertions  # noqa: PLC0415 - imports what runs agents

    return assertions.assert_keeps_deadline


@pytest.fixture
def assert_survives_cuts() -> Any:
    """Return `docmind_lab.testing.assert_survives_cuts`: a graph can be cut anywhere and go on."""
    from docmind_lab.experiments import assertions  # noqa: PLC0415 - imports what runs agents

    return assertions.assert_survives_cuts
