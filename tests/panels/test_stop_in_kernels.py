"""Stop, clicked as a front end does it, in kernels of two releases: one before comms changed under a cell, one after.

Each release is laid over the environment in a folder of its own, so that nothing of the environment changes.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="ipykernel is not installed")
pytestmark = [pytest.mark.full, pytest.mark.wall]

RELEASES = {"7.3": "ipykernel>=7.3,<7.4", "newest": "ipykernel"}
# A kernel imports the panel and its processes the stack: 15 s on two idle cores, minutes on a machine that is busy.
PATIENCE_S = 240.0
LOOK_EVERY_S = 0.2

# Far more runs than are done before anybody can click.
MAKE = """
import ipykernel
from docmind_lab.views.panels import tune
panel = tune(runs=400, alternatives=("A", "B"))
at_clicks = []
panel.stop_button.on_click(lambda _: at_clicks.append(len(panel._sweep.measured)))
"""
# A kernel that is ended would leave the warm processes to their own timeout.
END = """
import loky
panel.close()
loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)
"""


@dataclass
class Kernel:
    """A kernel with a panel in it. client: of jupyter_client. folder: where its ipykernel is."""

    client: Any
    folder: Path

    def run(self, code: str, **expressions: str) -> dict[str, Any]:
        """The values of the expressions after the code; both as a cell would have them."""
        reply = self.client.execute(code, user_expressions=expressions, reply=True, timeout=PATIENCE_S)["content"]
        assert reply["status"] == "ok", reply
        return {
            name: ast.literal_eval(found["data"]["text/plain"]) for name, found in reply["user_expressions"].items()
        }

    def value(self, expression: str) -> Any:
        """The value of an expression."""
        return self.run("", value=expression)["value"]

    def until(self, expression: str) -> None:
        """Return once the expression is true; the kernel is idle in between, as it is when a person waits."""
        limit_at = time.monotonic() + PATIENCE_S
        while not self.value(f"bool({expression})"):
            assert time.monotonic() < limit_at, f"{expression} is still false: {self.value('panel.status')}"
            time.sleep(LOOK_EVERY_S)

    def click(self, button: str) -> None:
        """What a front end sends for a click."""
        content = {
            "comm_id": self.value(f"{button}.comm.comm_id"),
            "data": {"method": "custom", "content": {"event": "click"}},
        }
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))


def overlaid(requirement: str, folder: Path) -> None:
    """Install one package without what it needs, which is there; skips where it is not to be had."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    # Where a proxy signs, its certificate is among the system's and not among those that uv brings.
    env = {**os.environ, "UV_SYSTEM_CERTS": "true"}
    try:
        subprocess.run([*command, requirement], check=True, capture_output=True, text=True, timeout=120, env=env)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{requirement} could not be installed within 2 minutes")
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip() or "no reason given").splitlines()[-1]
        pytest.skip(f"{requirement} could not be installed: {reason}")


@pytest.fixture(scope="module", params=RELEASES)
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel of each release, a panel's runs under way in it."""
    from jupyter_client.manager import KernelManager

    place = tmp_path_factory.mktemp("kernel")
    overlaid(RELEASES[request.param], place / "overlay")
    environment = {**os.environ, "PYTHONPATH": str(place / "overlay"), "IPYTHONDIR": str(place / "ipython")}
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=environment, cwd=str(place))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        made = Kernel(client, place / "overlay")
        made.run(MAKE)
        yield made
        made.run(END)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_kernel_is_of_that_release(kernel: Kernel) -> None:
    assert kernel.value("ipykernel.__file__").startswith(str(kernel.folder))


def test_stop_ends_a_sweep_within_one_run_of_each_worker(kernel: Kernel) -> None:
    kernel.until("len(panel._sweep.measured) >= 4")
    kernel.click("panel.stop_button")
    kernel.until("not panel.running")
    found = kernel.run(
        "", clicks="at_clicks", done="len(panel._sweep.measured)", window="panel._engine._workers.window"
    )
    (at_click,) = found["clicks"]
    assert 4 <= at_click <= found["done"] <= at_click + found["window"] < 800
    assert kernel.value("panel.status").startswith("20 s: stopped, ")
    assert kernel.value("panel.stop_button.disabled")


def test_a_click_that_comes_late_does_not_end_the_next_sweep(kernel: Kernel) -> None:
    kernel.click("panel.stop_button")
    kernel.run("panel.runs = 3")
    kernel.until("not panel.running")
    assert "complete, 6 of 6 runs" in kernel.value("panel.status")
