"""Gateways: the probe says whether the server behind one learns that the client has left."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.server_behaviour import PHASES
from surveys import gateways
from surveys.__main__ import main
from surveys.gateways import Gateway, as_markdown, probe_gateway, started

ROOT = Path(__file__).parents[2]

# A gateway whose truth is known: it passes bytes on, and closes the connection behind it when its client leaves, or
# never before the answer is there.
PASSES_ON = """
import asyncio, sys
port, upstream, tells = int(sys.argv[1]), sys.argv[2].split(":"), sys.argv[3] == "tells"
async def pump(source, target):
    while data := await source.read(65536):
        target.write(data)
    return target
async def serve(reader, writer):
    behind, to_server = await asyncio.open_connection(*upstream)
    asking, answering = asyncio.create_task(pump(reader, to_server)), asyncio.create_task(pump(behind, writer))
    await asyncio.wait([asking, answering] if tells else [answering], return_when=asyncio.FIRST_COMPLETED)
    to_server.close(), writer.close()
async def run():
    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()
asyncio.run(run())
"""


def passing_on(habit: str) -> Gateway:
    arguments = ["-c", PASSES_ON.replace("{", "{{").replace("}", "}}"), "{port}", "{upstream}", habit]
    return Gateway(habit, sys.executable, ["--version"], arguments)


@pytest.mark.wall
@pytest.mark.full
@pytest.mark.parametrize(("habit", "ends"), [("tells", "at_once"), ("is silent", "at_its_end")])
def test_the_verdict_is_what_the_gateway_does(habit: str, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A second for each trial instead of three.
    quick = gateways._BEHIND.scaled(0.5)
    monkeypatch.setattr(gateways, "_BEHIND", quick)
    trials = probe_gateway(passing_on(habit), repeats=1)
    assert set(trials["work_ends"]) == {ends}
    assert set(trials["phase"]) == set(PHASES)
    assert set(trials["evidence"]) == {"log"}


def test_a_gateway_that_does_not_start_is_named_with_what_it_printed() -> None:
    broken = Gateway("broken", sys.executable, ["--version"], ["-c", "raise SystemExit('no such option')"])
    with (
        pytest.raises(ServiceError, match="broken did not start; it printed last: no such option"),
        started(broken, "http://127.0.0.1:1"),
    ):
        pass


def test_a_gateway_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConfigurationError, match="the program no-such-gateway is not on the PATH"):
        probe_gateway(Gateway("absent", "no-such-gateway", [], []))


def test_an_unknown_gateway_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateways", "apache"]) == 2
    assert "gateways are caddy, nginx" in " ".join(capsys.readouterr().err.split())


def test_the_page_has_the_table_of_the_rows_in_the_repository() -> None:
    page = (ROOT / "docs" / "does-it-stop.md").read_text(encoding="utf-8")
    assert as_markdown(pd.read_csv(ROOT / "data" / "gateway_probes.csv")) in page
