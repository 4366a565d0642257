"""Does a server stop? The probe agrees with the truth where it is known: our service in each of its behaviours."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands_here import said
from script_modules import load_script
from served_here import Here
from service_doors import always

from benchmarks.tiny_server import TinyServer
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.server_behaviour import PHASES, Phase, PhaseBehaviour, ServerBehaviour, shipped_behaviours
from docmind_lab.experiments.probe import ServerProbe, Target, Trial, Undisturbed, first_model, probe_server
from docmind_lab.experiments.probe.probe_bench import Bench
from docmind_lab.experiments.probe.truth import Counters, Look, truth_of
from docmind_lab.experiments.probe.verdicts import check_period_s, why_unknown, work_ends_of
from docmind_lab.statistics.latency.profile import LatencyProfile

# One call at a time; the first token after 0.4 s, nine tokens in 1.3 s.
PROFILE = LatencyProfile("probed", "Nine tokens.", "a test", always(0.4), always(0.1), always(0.01), slots=1)
QUICK = LatencyProfile("side by side", "Nine tokens.", "a test", always(0.15), always(0.02), always(0.01))
DELAY_S = 0.1
# One of each kind of end, so that a single probe tells them apart.
MIXED: dict[Phase, PhaseBehaviour] = {
    "queue": PhaseBehaviour(work_ends="at_its_end"),
    "prefill": PhaseBehaviour(work_ends="at_once", delay_s=DELAY_S),
    "generation": PhaseBehaviour(work_ends="at_its_end"),
    "before_first_token": PhaseBehaviour(work_ends="at_next_write"),
    "mid_stream": PhaseBehaviour(work_ends="at_once", delay_s=0.0),
}
BEHAVIOURS = {
    "goes on": ServerBehaviour(
        name="goes-on", phases={phase: PhaseBehaviour(work_ends="at_its_end") for phase in PHASES}
    ),
    "mixed": ServerBehaviour(name="mixed", phases=MIXED),
}
# A trial takes about a second. What a client and a server need to notice each other is milliseconds; shared cores
# pause for tens of them.
NOTICED_S = 0.25


@pytest.fixture
def serving(serve_here: Callable[..., Here]) -> Callable[..., Target]:
    def start(**options: Any) -> Target:
        here = serve_here(**({"profile": PROFILE} | options))
        return Target(here.addresses.openai_base_url, "docmind-scripted")

    return start


# ---- what a server counts of its work

COUNTED = """# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a {b} c"} 1.0
vllm:num_requests_running{engine="1",model_name="a"} 2.0 1764090000000
vllm:num_requests_waiting{engine="0"} 4
vllm:generation_tokens_total 1.31e+02
vllm:latency_seconds_bucket{le="+Inf"} +Inf
"""


def test_counters_are_read_from_prometheus_text_and_summed_over_their_labels(stub: Callable[..., Any]) -> None:
    body = COUNTED.encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    server = stub(lambda request, connection: connection.send(head + body))
    truth = truth_of(Target(f"{server.url}/v1", "a"))
    assert isinstance(truth, Counters)
    assert (truth.server, truth.look()) == ("vLLM", Look(busy=7, queued=4, tokens=131.0))


# ---- against our own service, whose behaviour is known


@pytest.mark.full
@pytest.mark.wall
@pytest.mark.parametrize(
    ("behaviour", "by_waiting"),
    [("mixed", False), ("mixed", True), ("goes on", True)],
)
def test_the_verdicts_are_the_behaviour_of_the_service(
    behaviour: str, by_waiting: bool, serving: Callable[..., Target]
) -> None:
    truth = BEHAVIOURS[behaviour]
    found = probe_server(serving(behaviour=truth), repeats=1, seconds=0.9, by_waiting=by_waiting)
    assert {phase: found.phase(phase).work_ends for phase in PHASES} == {
        phase: truth.phases[phase].work_ends for phase in PHASES
    }
    for trial in found.results:
        if trial.phase == "queue":
            continue
        ends = truth.phases[trial.phase]
        expected_s = {
            "at_once": ends.delay_s or 0.0,
            "at_next_write": trial.next_write_s,
            "at_its_end": trial.remaining_s,
        }[ends.work_ends]
        assert trial.low_s - NOTICED_S <= expected_s <= trial.high_s + NOTICED_S, trial
        assert trial.evidence == ("wait of another request" if by_waiting else "log")
    # What is written is what simulated services play.
    made = found.behaviour("probed", "a command")
    assert {phase: made.phases[phase].work_ends for phase in PHASES} == {
        phase: truth.phases[phase].work_ends for phase in PHASES
    }
    assert set(found.trials.columns) >= {"phase", "how", "low_s", "high_s", "work_ends"}
    assert len(found.results) == 2 * len(PHASES)


@pytest.mark.full
@pytest.mark.wall
def test_a_server_that_takes_calls_side_by_side_and_counts_nothing_cannot_be_told(
    serving: Callable[..., Target],
) -> None:
    found = probe_server(serving(profile=QUICK), repeats=1, seconds=0.1, by_waiting=True)
    assert {trial.work_ends for trial in found.results} == {"unknown"}
    assert all("other requests do not wait" in trial.note for trial in found.results)


# ---- against a real server


@pytest.mark.wall
@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="the extra live is not installed")
def test_the_wait_of_another_request_tells_of_llama_cpp_what_its_counters_tell() -> None:
    with TinyServer() as server:
        target = Target(server.base_url, first_model(Target(server.base_url, "")))
        counted = probe_server(target, repeats=1, seconds=2.0)
        try:
            waited = probe_server(target, repeats=1, seconds=2.0, by_waiting=True)
        except ServiceError as error:
            # Other work on the machine made the server's own calls unsteady, and the probe reads nothing from those.
            pytest.skip(str(error))
    for phase in ("prefill", "generation", "before_first_token", "mid_stream"):
        assert counted.phase(phase).work_ends == waited.phase(phase).work_ends, phase
    # Without streaming it looks once a second whether its client is there, unless it has other things to report.
    assert counted.phase("generation").work_ends == "at_once"
    (polled,) = [trial for trial in counted.results if trial.how == "FIN, polled"]
    assert polled.work_ends == "at_its_end"


# ---- what follows from an interval


@pytest.mark.parametrize(
    ("phase", "low_s", "high_s", "ends"),
    [
        ("generation", 0.0, 0.1, "at_once"),
        ("generation", 0.0, 4.9, "at_once"),
        ("generation", 9.0, 10.5, "at_its_end"),
        ("generation", 0.0, 9.0, "unknown"),
        ("before_first_token", 0.0, 0.5, "at_once"),
        ("before_first_token", 1.9, 2.1, "at_next_write"),
        ("before_first_token", 0.0, 2.1, "unknown"),
        ("before_first_token", 9.0, 10.0, "at_its_end"),
    ],
)
def test_a_verdict_needs_an_interval_that_allows_no_other(phase: Phase, low_s: float, high_s: float, ends: str) -> None:
    assert work_ends_of(phase, low_s, high_s, remaining_s=10.0, next_write_s=2.0) == ends


def test_what_an_interval_cannot_tell_apart_is_named() -> None:
    assert why_unknown(2.1, remaining_s=10.0) == "the interval holds both a stop and the next write"
    assert why_unknown(9.0, remaining_s=10.0) == "the interval holds both a stop and the whole answer"
    assert why_unknown(math.inf, remaining_s=10.0) == "the answer was complete before the client left"


def trial(left_after_s: float, delay_s: float, **changes: Any) -> Trial:
    values: dict[str, Any] = {
        "phase": "generation",
        "how": "FIN",
        "repeat": 1,
        "left_after_s": left_after_s,
        "remaining_s": 10.0,
        "next_write_s": 10.0,
        "low_s": delay_s,
        "high_s": delay_s,
        "late_tokens": None,
        "evidence": "log",
        "work_ends": "at_once",
    }
    return Trial(**(values | changes))


def test_a_server_that_looks_once_a_second_is_known_by_when_its_work_ends() -> None:
    assert check_period_s([trial(0.3, 0.71), trial(1.45, 0.53), trial(2.2, 0.8)]) == 1.0
    assert check_period_s([trial(0.3, 0.2), trial(1.45, 0.07), trial(2.2, 0.31)]) == 0.5
    assert check_period_s([trial(0.3, 0.4), trial(1.45, 0.4), trial(2.2, 0.4)]) is None
    # One that stops at once is at no such instant but by chance.
    assert check_period_s([trial(1.0, 0.01), trial(2.0, 0.01), trial(3.0, 0.01)]) is None
    # At one instant it may do something else, as begin to generate; another phase can show that it looks.
    in_prompt = [trial(0.1, 0.41), trial(0.17, 0.33), trial(0.11, 0.4)]
    assert check_period_s(in_prompt) is None
    assert check_period_s(in_prompt, [trial(1.3, 0.21), trial(2.2, 0.31), trial(1.6, 0.4)]) == 0.5


def probe_of(*trials: Trial) -> ServerProbe:
    usual = Undisturbed(50, 9, 9, 0.4, 1.3, 1.3, (0.5,), 1.3)
    return ServerProbe("a server", "http://127.0.0.1:1/v1", usual, trials)


POLLED = trial(1.0, 9.0, how="FIN, polled", work_ends="at_its_end")
UNTOLD = trial(math.nan, math.nan, work_ends="unknown", note="no queue was seen", evidence="none")


@pytest.mark.parametrize(
    ("trials", "ends", "note"),
    [
        ([trial(1.0, 0.1), trial(1.0, 9.0, how="RST", work_ends="at_its_end")], "unknown", "disagree: FIN at_once"),
        ([trial(1.0, 0.1), POLLED], "at_once", "while its counters are polled: at_its_end"),
        ([UNTOLD], "unknown", "no queue was seen"),
    ],
    ids=["trials that disagree", "polling", "no evidence"],
)
def test_what_a_phase_comes_to_and_why_it_is_unknown(trials: list[Trial], ends: str, note: str) -> None:
    found = probe_of(*trials).phase("generation")
    assert (found.work_ends, found.trials) == (ends, 1 if POLLED in trials else len(trials))
    assert note in found.note
    assert note in probe_of(*trials).text()


# ---- mistakes


def test_numbers_that_cannot_be_used_and_a_server_that_is_not_there_are_named() -> None:
    with pytest.raises(ConfigurationError, match="repeats must be 1 or more"):
        probe_server(Target("http://127.0.0.1:1/v1", "m"), repeats=0)
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1:1"):
        probe_server(Target("http://127.0.0.1:1/v1", "m"))


def test_what_is_not_allowed_and_what_nobody_says_yes_to_is_not_probed(
    serving: Callable[..., Target], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, refused = said(capsys, "probe", "server", "http://models.example/v1", "--yes")
    assert (code, "models.example is not on this machine" in refused) == (2, True)
    code, _, asked = said(capsys, "probe", "server", serving().base_url)
    assert (code, "at most" in asked, "say so with --yes" in asked) == (2, True, True)


def test_more_calls_than_were_announced_are_not_sent(serving: Callable[..., Target]) -> None:
    bench = Bench(serving(profile=QUICK), None, most_calls=1)
    bench.whole_s(2, 1)
    with pytest.raises(ServiceError, match="more than the 1 calls that were announced"):
        bench.whole_s(2, 1)


def test_a_server_that_has_just_started_is_measured_when_its_calls_take_as_long_as_the_ones_before(
    serving: Callable[..., Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(serving(profile=QUICK), None, most_calls=60)
    cold_s, whole_s = iter([9.0, 5.0, 3.0]), bench.whole_s
    monkeypatch.setattr(bench, "whole_s", lambda *given: whole_s(*given) + next(cold_s, 0.0))
    assert bench.measure_undisturbed(0.1, 64).whole_s < 3.0


def test_the_key_of_an_endpoint_goes_to_no_other_server(
    serving: Callable[..., Target], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys: list[str] = []

    def note_key(target: Target, **options: Any) -> ServerProbe:
        keys.append(target.api_key)
        return probe_of(trial(1.0, 0.1))

    monkeypatch.setattr("docmind_lab.experiments.probe.probe_server", note_key)
    monkeypatch.setenv("DOCMIND_LLM__API_KEY", "secret")
    url = serving().base_url
    for endpoint in ("http://127.0.0.1:1/v1", url):
        monkeypatch.setenv("DOCMIND_LLM__BASE_URL", endpoint)
        assert said(capsys, "probe", "server", url, "--yes")[0] == 0
    assert keys == ["", "secret"]


@pytest.mark.wall
@pytest.mark.full
def test_the_command_writes_a_profile_that_compare_plays(
    serving: Callable[..., Target], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = serving(behaviour=BEHAVIOURS["mixed"])
    out, rows = tmp_path / "mine.json", tmp_path / "mine.csv"
    words = ["--repeats", "1", "--seconds", "0.9", "--yes", "--out", str(out), "--trials", str(rows)]
    code, printed, _ = said(capsys, "probe", "server", target.base_url, *words)
    assert code == 0
    assert "goes on to its end" in printed
    assert "stops when it next writes" in printed
    assert json.loads(out.read_text(encoding="utf-8"))["name"] == "mine"
    assert len(rows.read_text(encoding="utf-8").splitlines()) == 2 * len(PHASES) + 1
    few = ("compare", "--runs", "1", "--alternatives", "C", "--json")
    assert said(capsys, *few, "--server", out, "--out", tmp_path / "study")[0] == 0


# ---- what ships with the package


def test_the_shipped_profile_is_what_its_trials_amount_to() -> None:
    derive = load_script(Path(__file__).parents[2] / "data" / "derive_server_behaviours.py")
    shipped = {each.name: each for each in shipped_behaviours()}
    assert shipped.keys() == derive.SERVERS.keys()
    for name, made in shipped.items():
        assert derive.behaviour_of_trials(name) == made
        assert {phase for phase, each in made.phases.items() if each.work_ends != "unknown"} == set(PHASES)
