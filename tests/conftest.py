"""Fixtures shared by the tests: a clock that moves by hand, the simulated services as a process, a stub server."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import certifi
import pytest
from hypothesis import HealthCheck, settings
from longest_first import LONGEST
from manual_clock import ManualClock
from served_here import Here
from stub_server import Answer, StubServer

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.hooks import installed
from docmind_lab.services.server import LogClient, ServiceAddresses, ServiceOptions, ServiceProcess
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile

# No test has a display.
os.environ["MPLBACKEND"] = "Agg"

# Grammars of addresses: jsonschema takes two seconds to build them where it finds them, for formats that no test has.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# Two shared cores pause for longer than Hypothesis allows one example, which says nothing about the code. A clock
# that is moved by hand carries nothing over from one example to the next that a deadline could see.
settings.register_profile(
    "docmind",
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("docmind")


def pytest_configure() -> None:
    """Have this process hear Ctrl-C: a shell that starts tests in the background has them ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    without_the_machines_authorities()
    # What is imported for thousands of tests stays until the end: looking for garbage meanwhile finds none.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()


def without_the_machines_authorities() -> None:
    """Have no HTTP client load the authorities that this machine trusts: 100 ms each, for hosts that no test asks."""
    load, paths = ssl.SSLContext.load_verify_locations, ssl.get_default_verify_paths()
    theirs = {None, certifi.where(), paths.cafile, paths.capath, paths.openssl_cafile, paths.openssl_capath}

    def load_others(self: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        if cadata or not {cafile, capath} <= theirs:
            load(self, cafile, capath, cadata)

    ssl.SSLContext.load_verify_locations = load_others  # type: ignore[method-assign]


# A core that others use may pause a test for a second, longer than any useful tolerance. A defect fails every time.
TRIES_OF_A_WALL_TEST = 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, and run a test in real time again when it fails."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))
    for item in items:
        if item.get_closest_marker("wall"):
            item.add_marker(pytest.mark.flaky(reruns=TRIES_OF_A_WALL_TEST - 1))


@pytest.fixture(scope="session", autouse=True)
def _no_garbage_among_what_stays() -> None:
    """The stack and all tests out of the collector's sight: half a million objects, looked through at each collection.

    A study in real time leaves what is frozen as it is.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_hooks_afterwards() -> Iterator[None]:
    """The HTTP clients as the test found them: `enforce` and `deadline` install their hooks for the whole process."""
    had_hooks = installed()
    yield
    if not had_hooks:
        dl.uninstall()


@pytest.fixture(autouse=True)
def _no_folders_afterwards() -> Iterator[None]:
    """The path as the test found it: a graph that is read from a file puts its folder first."""
    before = sys.path.copy()
    yield
    sys.path[:] = before


@pytest.fixture(autouse=True)
def _no_figures_afterwards() -> Iterator[None]:
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def services() -> Iterator[ServiceProcess]:
    """The services with a hundredth of the typical latencies: calls of some milliseconds."""
    with ServiceProcess(ServiceOptions(profile=LatencyProfile.named("typical/100"))) as process:
        yield process


@pytest.fixture(scope="session")
def service_log(services: ServiceProcess) -> Iterator[LogClient]:
    client = LogClient(services.addresses.log_url)
    yield client
    client.close()


@pytest.fixture(scope="module")
def live() -> Iterator[ServiceAddresses]:
    """Servers that a study knows nothing of but their addresses."""
    with contextlib.closing(Here.of()) as here:
        yield here.addresses


@pytest.fixture
def serve_here() -> Iterator[Callable[..., Here]]:
    """A function that serves a door, or services with these options, in this process until the test is over."""
    from service_doors import SLOW  # loads clients, for which most tests have no use

    with contextlib.ExitStack() as stack:

        def start(door: WallDoor | None = None, **options: Any) -> Here:
            served = door or ServiceOptions(**({"profile": SLOW} | options)).door()
            return stack.enter_context(contextlib.closing(Here(served)))

        yield start


@pytest.fixture
def stub() -> Iterator[Callable[..., StubServer]]:
    """A function that starts a stub server with an answer; all of them are stopped after the test."""
    servers: list[StubServer] = []

    def start(answer: Answer, host: str = "127.0.0.1") -> StubServer:
        servers.append(StubServer(answer, host))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port whose queue of connections is full, so that another one is neither accepted nor refused."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.fixture
def postgres_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server of PostgreSQL for one test, which libpq finds by its own variables."""
    programs = shutil.which("initdb"), shutil.which("pg_ctl")
    if None in programs:
        pytest.skip("no initdb and pg_ctl: Debian's package postgresql")
    initdb, pg_ctl = map(str, programs)
    # Short, since it holds the server's socket. A server of Postgres does not run as root.
    folder = tempfile.mkdtemp(prefix="pg-")
    user = {"user": "postgres"} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, "postgres")
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder, **user}
    subprocess.run([initdb, "-D", f"{folder}/data", "-A", "trust", "-U", "postgres", "-N"], **quiet)
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    subprocess.run([pg_ctl, "-D", f"{folder}/data", "-w", "-o", options, "-l", f"{folder}/log", "start"], **quiet)
    for name, value in {"PGHOST": folder, "PGUSER": "postgres", "PGDATABASE": "postgres"}.items():
        monkeypatch.setenv(name, value)
    yield
    subprocess.run([pg_ctl, "-D", f"{folder}/data", "-m", "immediate", "stop"], **quiet)
    shutil.rmtree(folder)
