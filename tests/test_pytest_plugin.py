"""The plugin of pytest, in tests of a user who has installed the package, in a process of their own."""

from __future__ import annotations

import pytest
from often import often

pytest_plugins = ["pytester"]

OUTCOMES = """
import asyncio, threading, time, unittest
import anyio, pytest
from docmind_lab import testing

@pytest.fixture
def limit_s():
    return 20

@pytest.mark.virtual_time
def test_threads_wait_virtually(limit_s):
    begun = time.monotonic()
    thread = threading.Thread(target=time.sleep, args=(3_600,))
    thread.start(); thread.join(limit_s)
    assert thread.is_alive() and time.monotonic() - begun == limit_s

@pytest.mark.virtual_time(horizon_s=7_200)
async def test_asyncio_waits_virtually(virtual_clock):
    await asyncio.sleep(3_600)
    assert virtual_clock.now() == 3_600 and virtual_clock.horizon_s == 7_200

@pytest.mark.virtual_time(3, 7_200)
def test_arguments_may_stand_by_their_place(virtual_clock):
    assert (virtual_clock.seed, virtual_clock.horizon_s) == (3, 7_200)

@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_anyio_has_its_loops_but_not_the_test():
    await anyio.sleep(3_600)

class TestMethods:
    pytestmark = pytest.mark.virtual_time

    @pytest.mark.parametrize("seconds", [1, 2])
    async def test_each(self, seconds):
        await asyncio.sleep(60 * seconds)

@pytest.mark.virtual_time
def test_that_fails():
    assert time.monotonic() < 0

@pytest.mark.virtual_time
def test_that_is_skipped():
    pytest.skip("by the test")

@pytest.mark.virtual_time
class TestOfUnittest(unittest.TestCase):
    def test_it(self):
        pass

def test_without_the_marker(virtual_clock, assert_keeps_deadline, assert_survives_cuts):
    assert virtual_clock.run(time.monotonic) < 1e9
    assert assert_keeps_deadline is testing.assert_keeps_deadline
    assert assert_survives_cuts is testing.assert_survives_cuts
"""
# As pytest-asyncio does in its mode auto: what pytest calls in the end is no coroutine function any more.
ASYNCIO_PLUGIN = """
import asyncio, functools, inspect
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        pyfuncitem.obj = functools.wraps(test)(lambda **arguments: asyncio.run(test(**arguments)))
    return (yield)
"""


@pytest.mark.parametrize(
    "neighbour", often(["", ASYNCIO_PLUGIN], ASYNCIO_PLUGIN), ids=["alone", "beside a plugin for asyncio"]
)
def test_the_marker_runs_tests_of_threads_and_asyncio_in_virtual_time(
    pytester: pytest.Pytester, neighbour: str
) -> None:
    pytester.makeconftest(neighbour)
    pytester.makepyfile(OUTCOMES)
    result = pytester.runpytest_subprocess("--strict-markers", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=8, failed=2, skipped=1)
    result.stdout.fnmatch_lines(["*assert time.monotonic() < 0", "*functions and methods of pytest, not of unittest*"])


def test_a_test_run_that_does_not_use_it_loads_nothing_of_the_stack(pytester: pytest.Pytester) -> None:
    heavy = "{'pandas', 'langgraph', 'httpx', 'matplotlib', 'docmind_lab.virtual_time', 'docmind_lab.testing'}"
    pytester.makepyfile(f"import sys\ndef test_it():\n    assert not {heavy} & set(sys.modules)")
    pytester.runpytest_subprocess("-p", "no:langsmith_plugin").assert_outcomes(passed=1)
