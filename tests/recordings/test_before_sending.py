"""What is said and asked before anything is sent to a live endpoint, and options that do not go together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from flat_compare import compare_by
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from recorded_runs import written
from stub_server import StubServer

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.comparison_run import resolve
from docmind_lab.experiments.comparison.live_estimate import RequestEstimate, expected_to_send
from docmind_lab.views.cli.compare import confirm_sending, notes_on_sending


class Declined(Exception):
    """Somebody said no."""


def test_the_estimate_comes_before_anything_is_sent(stub: Callable[..., StubServer]) -> None:
    server = stub(lambda request, connection: None)
    said: list[str] = []

    def decline(estimate: str) -> None:
        said.append(estimate)
        raise Declined

    settings = Settings(llm={"base_url": f"http://127.0.0.1:{server.port}/v1", "model": "somebodys"})
    with pytest.raises(Declined):
        dl.compare(
            decision_timeout_s=2.0, alternatives="A", world=dl.Live(settings=settings, before_sending=decline), runs=5
        )
    assert server.requests == []
    assert server.connections == 0
    (sentence,) = said
    assert sentence.startswith("5 runs: about ")
    assert "if every run were as the worst (from 3 runs of the simulated model" in sentence


def test_an_estimate_says_what_its_numbers_are() -> None:
    tried = str(RequestEstimate(590, 410_000, 720, 500_000, 56, 21, tries=3))
    assert "calls that fail are tried up to 3 times, which makes it 2,160" in tried
    assert tried.endswith("None of this is a limit: --max-requests 2160 is")
    text = str(RequestEstimate(590, 410_000, 720, 500_000, 56, 21))
    assert "56 runs: about 590 requests and 410,000 tokens, 720 and 500,000 if every run were as the worst" in text


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A terminal whose person says no; what it was asked."""
    asked: list[str] = []

    def confirm(question: str, **options: Any) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", confirm)
    return asked


def test_on_a_terminal_it_is_asked_and_a_no_ends_it_and_a_yes_is_not_asked_again(
    terminal: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    confirm_sending(yes=True)("5 runs: about 60 requests")
    assert terminal == []
    assert "To be sent to the live endpoint: 5 runs: about 60 requests." in capsys.readouterr().err
    with pytest.raises(typer.Exit):
        confirm_sending(yes=False)("5 runs: about 60 requests")
    assert terminal == ["Send them?"]
    assert "nothing was sent" in capsys.readouterr().err


def test_notes_say_why_a_study_ended_early() -> None:
    manifest = {
        "ended_by": "max_requests: 60 requests were sent",
        "sent": {"requests": 60, "tokens": 65136, "requests_with_estimated_tokens": 2, "runs_cut": 4},
    }
    assert list(notes_on_sending(manifest, 3)) == [
        "Sent: 60 model requests, 65,136 tokens, of 2 requests estimated.",
        (
            "Ended by max_requests: 60 requests were sent. Its 3 finished runs are kept; 4 that needed another request "
            "are left out."
        ),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record_text": True}, "record_text is for a recording"),
        ({"record": "r", "replay": "s"}, "record: the recording has settled it"),
        ({"record": "r", "clock": "virtual"}, "record: in virtual time nothing is sent"),
        ({"max_tokens": 9, "clock": "virtual"}, "max_tokens: in virtual time nothing is sent"),
        ({"max_requests": 0}, "max_requests must be 1 or more"),
        ({"record": "same", "out": "same"}, "record and out are the same folder"),
        ({"record": "r", "system": "peers"}, "peer agents' tasks are not recorded"),
        ({"record": "r", "system": "hops"}, "the hops' requests are not recorded"),
        # What a recording has settled.
        ({"replay": "handbook", "clock": "wall"}, "^clock: the recording has"),
        ({"replay": "handbook", "latencies": "fast"}, "^latencies: the recording has"),
        ({"replay": "handbook", "faults": "hang"}, "^faults: the recording has"),
        ({"replay": "handbook", "seed": 8}, "^seed: the recording has"),
        ({"replay": "handbook", "system": "staged"}, "^system: the recording has"),
        ({"replay": "language_reference"}, "language_reference has left the lab"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_starts(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for corpus in ("handbook", "language_reference"):
        design = Comparison(runs=1).design() | {"corpus": corpus}
        manifest = {"study_id": "s", "recording_format": 1, "design": design}
        (written(Path(corpus)) / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        compare_by(**options, decision_timeout_s=1.0, runs=1, alternatives="A")


def test_the_estimate_counts_the_tries_of_calls_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    agent = create_agent(ChatOpenAI(model="any"), [])
    planned = resolve(dl.graph(agent, ["a"]), world=dl.Live(), alternatives="unguarded", runs=2)
    # ChatOpenAI tries a call three times.
    assert "tried up to 3 times" in expected_to_send(*planned)
