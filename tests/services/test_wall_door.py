"""The services behind real sockets, used through the official clients."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from dataclasses import replace

import httpx
import httpx2
import openai
import pytest
from service_doors import (
    MODEL,
    QUESTION,
    SLOW,
    Crowd,
    new_run,
    openai_at,
    tags,
)
from watched_calls import Watcher

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.server_behaviour import GOES_ON
from docmind_lab.network import HttpClients, call_scope
from docmind_lab.services.faults import Fault
from docmind_lab.services.hosted_behaviour import PeerHabits
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Plan, ServiceRequest, Wait, json_steps
from docmind_lab.services.server import LogClient, ServiceAddresses, ServiceOptions, ServiceProcess, bind
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile

# ---- the log


def test_there_is_one_row_for_each_request_in_the_order_of_its_instants(services, service_log):
    run_id = new_run()
    with openai_at(services.addresses) as client:
        for call_id in ("a", "b"):
            client.chat.completions.create(model=MODEL, messages=QUESTION, extra_headers=tags(run_id, call_id))
    rows = service_log.rows(run_id, wait_quiet_s=5)
    assert [(row.call_id, row.role, row.step, row.attempt) for row in rows] == [
        ("a", "router", "1.0.1", 1),
        ("b", "router", "1.0.1", 1),
    ]
    for row in rows:
        instants = [row.received_at, row.first_byte_at, row.last_byte_at, row.ended_at]
        assert None not in instants
        assert instants == sorted(instants)
        assert (row.outcome, row.status, row.kind) == ("ok", 200, "llm")
        assert row.output_tokens == sum(tokens for _, _, tokens in row.token_spans) > 0
        assert {type(span) for span in row.token_spans} == {tuple}, "as they were before they were JSON"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["none", "trickle=0.02:*"])
def test_the_clients_attempt_and_the_services_row_are_of_one_call_and_on_one_clock(fault, stream, serve_here):
    quick = LatencyProfile.named("typical/100")
    here = serve_here(profile=quick, faults=() if fault == "none" else (Fault.parse(fault),))
    run_id, seen, http = new_run(), Watcher(), HttpClients()
    call = seen.call(run_id=run_id)
    with openai_at(here.addresses, http_client=http.openai) as client, call_scope(call):
        reply = client.chat.completions.create(model=MODEL, messages=QUESTION, stream=stream)
        if stream:
            list(reply)
    row, (attempt,) = here.row(run_id), seen.ended
    assert (row.run_id, row.call_id, row.attempt) == (run_id, call.call_id, attempt.number)
    in_order = [attempt.started_at, attempt.sent_at, row.received_at, row.first_byte_at, attempt.first_byte_at]
    assert in_order == sorted(in_order)
    assert attempt.ended_at >= row.first_byte_at


@pytest.mark.parametrize(
    ("method", "query", "named"),
    [
        *(("GET", f"?wait_quiet_s={limit}", "wait_quiet_s") for limit in ("soon", "nan", "-1", "inf")),
        *(("DELETE", query, "run_id") for query in ("", "?run_id=")),
    ],
)
def test_a_request_to_the_log_that_cannot_be_meant_is_a_bad_one(method, query, named, services):
    response = httpx.request(method, f"{services.addresses.log_url}{query}", trust_env=False)
    assert response.status_code == 400
    assert named in response.json()["error"]


def test_a_log_that_cannot_be_read_is_a_service_error():
    listener = bind(0)
    port = listener.getsockname()[1]
    listener.close()
    log = LogClient(ServiceAddresses.at_port(port).log_url)
    with pytest.raises(ServiceError, match=str(port)):
        log.rows("r1")
    log.close()


# ---- a client that leaves


def test_a_request_whose_client_left_before_it_was_all_sent_was_never_asked(serve_here):
    here, run_id = serve_here(profile=LatencyProfile.named("typical/100")), new_run()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in tags(run_id).items())
    with socket.create_connection(("127.0.0.1", here.port)) as connection:
        connection.sendall(head.encode() + b'\r\n{"model":')
    # The next request is served after the service has seen the first one end.
    with openai_at(here.addresses) as client:
        client.chat.completions.create(model=MODEL, messages=QUESTION, extra_headers=tags(run_id, "next"))
    assert [row.call_id for row in here.log.rows(run_id, wait_quiet_s=5)] == ["next"]


# ---- hangs, and the end of a run


def test_forgetting_a_run_cuts_a_hang_and_refuses_what_its_orphans_still_send(serve_here):
    here = serve_here(profile=LatencyProfile.named("typical/100"), faults=(Fault("hang", "router"),))
    crowd, other_run = Crowd(here), new_run()
    run_id = crowd.run_id
    crowd.comes("hangs")
    assert here.row(run_id, wait_quiet_s=0).outcome == "open"
    assert here.row(run_id, wait_quiet_s=0).first_byte_at is None
    here.log.forget(run_id)
    crowd.gone()
    # The client was told not to try again, so the cut request is the only one.
    (ended,) = crowd.errors
    assert isinstance(ended, openai.InternalServerError)
    assert ended.status_code == 503
    with openai_at(here.addresses, max_retries=5) as client:
        with pytest.raises(openai.InternalServerError) as caught:
            client.chat.completions.create(model=MODEL, messages=QUESTION, extra_headers=tags(run_id))
        assert (caught.value.status_code, caught.value.code) == (503, "run_over")
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert here.log.rows(run_id) == [], "a refused orphan leaves no row"
        headers = tags(other_run, role="synthesis")
        assert client.chat.completions.create(model=MODEL, messages=QUESTION, extra_headers=headers)
        assert client.chat.completions.create(model=MODEL, messages=QUESTION), "one without a run is served"


def test_a_stream_that_is_cut_is_a_broken_connection_for_its_client(serve_here):
    here, run_id = serve_here(), new_run()
    with openai_at(here.addresses) as client:
        options = {"model": MODEL, "messages": QUESTION, "stream": True}
        with client.chat.completions.create(**options, extra_headers=tags(run_id)) as chunks:
            next(iter(chunks))
            here.log.forget(run_id)
            with pytest.raises(openai.APIConnectionError) as caught:
                list(chunks)
    assert isinstance(caught.value.__cause__, httpx2.RemoteProtocolError)


class Gate:
    """A service whose planning waits until the test lets it through."""

    def __init__(self) -> None:
        self.asked, self.opened = threading.Event(), threading.Event()

    def plan(self, request: ServiceRequest) -> Plan:
        self.asked.set()
        self.opened.wait(5)
        return Plan((Wait(30.0), *json_steps(200, {})), "llm")


def test_a_request_that_is_being_planned_when_its_run_is_forgotten_is_refused_too(serve_here):
    gate = Gate()
    here = serve_here(WallDoor(llm=gate, vectors=OpenAIService(SLOW)))
    run_id, ended = new_run(), []

    def ask() -> None:
        url = f"{here.addresses.openai_base_url}/anything"
        ended.append(httpx.post(url, headers=tags(run_id), trust_env=False, timeout=10))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert gate.asked.wait(5)
    here.log.forget(run_id)
    gate.opened.set()
    thread.join(5)
    assert [response.status_code for response in ended] == [503]
    assert here.log.rows(run_id) == []


# ---- the process


def test_a_port_that_cannot_be_had_is_refused_with_the_port_and_the_remedy():
    with bind(0) as listener:
        for port in (listener.getsockname()[1], -1, 65536):
            with pytest.raises(ConfigurationError, match=f"port {port} .*--port 0 for a free one"):
                bind(port)


@pytest.mark.full
def test_the_services_print_one_line_of_json_and_end_when_their_standard_input_closes():
    process = subprocess.Popen(
        [sys.executable, "-m", "docmind_lab.services"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(ServiceOptions().as_json() + "\n")
    process.stdin.flush()
    addresses = json.loads(process.stdout.readline())
    assert set(addresses) == {"openai_base_url", "qdrant_url", "log_url"}
    # Printed when it is ready: the first request is answered.
    models_url = f"{addresses['openai_base_url']}/models"
    assert httpx.get(models_url, trust_env=False, timeout=10).status_code == 200
    rest, errors = process.communicate(timeout=10)
    assert (rest, errors, process.returncode) == ("", "", 0)


@pytest.mark.full
def test_a_process_ends_with_its_block():
    with ServiceProcess(ServiceOptions(profile=LatencyProfile.named("typical/100"))) as process:
        url = f"{process.addresses.openai_base_url}/models"
        assert httpx.get(url, trust_env=False, timeout=10).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False, timeout=10)


@pytest.mark.parametrize(("program", "message"), [("raise SystemExit(3)", "exit code 3"), ("print('hello')", "hello")])
def test_services_that_do_not_start_or_say_something_else_are_a_service_error(program, message):
    with pytest.raises(ServiceError, match=message):
        ServiceProcess(command=(sys.executable, "-c", program)).__enter__()


@pytest.mark.parametrize("profile", [LatencyProfile.named("typical/10"), SLOW, replace(SLOW, slots=2)])
def test_the_options_of_a_process_survive_the_way_over_json(profile):
    options = ServiceOptions(
        profile, (Fault("stall", "*", 0.25, 1.5), Fault("http_500", attempts=1)), GOES_ON, 5, PeerHabits(lost=0.25)
    )
    line = options.as_json()
    assert "\n" not in line
    assert ServiceOptions.from_json(line) == options
    assert options.door().llm.faults == options.door().vectors.faults == options.faults


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "must be one JSON object"),
        ("[]", "must be one JSON object"),
        ({"slots": 3}, "must be one JSON object of them: .*'slots'"),
        ({"faults": ["hnag"]}, "did you mean 'hang'"),
        ({"profile": {}}, "latency profile fields: name: Field required"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(change, message):
    text = change if isinstance(change, str) else json.dumps(json.loads(ServiceOptions().as_json()) | change)
    with pytest.raises(ConfigurationError, match=message):
        ServiceOptions.from_json(text)


@pytest.mark.full
def test_a_process_that_is_given_no_options_says_so_and_ends_with_exit_code_2():
    done = subprocess.run([sys.executable, "-m", "docmind_lab.services"], input="", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("docmind_lab.services: service options must be one JSON object")
