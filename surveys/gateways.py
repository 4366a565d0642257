"""Whether a gateway tells the model server behind it that the client has left: the probe of a server, through it.

    with started(GATEWAYS["caddy"], upstream="http://127.0.0.1:8000") as base_url:
        ...
    trials = probe_gateway(GATEWAYS["caddy"])       # a row for each call that was left
    as_markdown(trials)                             # a row for each gateway

The server is the lab's own, which stops at once when it is told, and whose log has when that was.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
import pandas as pd

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.server_behaviour import PHASES
from docmind_lab.experiments.batch.cell_run import Progress
from docmind_lab.experiments.probe.probe_server import probe_server
from docmind_lab.experiments.probe.truth import Target
from docmind_lab.services.openai_service import MODEL_NAME
from docmind_lab.services.server import ServiceOptions, ServiceProcess, bind
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.quantiles import QuantileTable

# Gateways of one process are there within a second; one in Python takes longer to import what it needs.
_START_LIMIT_S: Final = 120.0
_END_LIMIT_S: Final = 10.0


# One call at a time; the first token after 1 s, nine tokens in 2 s more: long beside what a gateway adds.
_BEHIND: Final = LatencyProfile(
    "behind a gateway",
    "Nine tokens in 3 s.",
    "constants",
    QuantileTable.constant(1.0),
    QuantileTable.constant(0.222),
    QuantileTable.constant(0.01),
    slots=1,
)


@dataclass(frozen=True)
class Gateway:
    """A gateway as its documentation starts it in front of one model server, with its defaults.

    Args:
        name: How rows call it.
        program: What is started; it must be on the PATH.
        version: Arguments with which it prints its version.
        arguments: Its arguments; {port}, {upstream} (host:port), {config} and {folder} are filled in.
        config: Text of its configuration, with the same to be filled in; empty for none.
        suffix: Of the configuration's file.
    """

    name: str
    program: str
    version: Sequence[str]
    arguments: Sequence[str]
    config: str = ""
    suffix: str = ".conf"

    def version_text(self) -> str:
        """The version that the program prints. Raises: ConfigurationError when it is not installed."""
        printed = subprocess.run([_program(self), *self.version], capture_output=True, text=True, check=False)
        number = re.search(r"\d+(\.\d+)+", printed.stdout + printed.stderr)
        return number[0] if number else "unknown"


_NGINX: Final = """\
daemon off; pid {folder}/nginx.pid; error_log stderr; events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{upstream}; %s }} }}
}}
"""
_HAPROXY: Final = """\
defaults
    mode http
    timeout connect 5s
    timeout client 10m
    timeout server 10m
frontend clients
    bind 127.0.0.1:{port}
    default_backend model
backend model
    %s
    server model {upstream}
"""
_LITELLM: Final = """\
model_list:
  - model_name: %s
    litellm_params: {{model: openai/%s, api_base: "http://{upstream}/v1", api_key: unused}}
general_settings: {{dangerously_permit_weak_or_unset_master_key: true}}
"""
_ALL: Final = (
    Gateway(
        "caddy", "caddy", ["version"], ["reverse-proxy", "--from", "http://127.0.0.1:{port}", "--to", "{upstream}"]
    ),
    Gateway("nginx", "nginx", ["-v"], ["-c", "{config}"], _NGINX % ""),
    Gateway("nginx-ignore-client-abort", "nginx", ["-v"], ["-c", "{config}"], _NGINX % "proxy_ignore_client_abort on;"),
    Gateway("nginx-proxy-buffering-off", "nginx", ["-v"], ["-c", "{config}"], _NGINX % "proxy_buffering off;"),
    Gateway("haproxy", "haproxy", ["-v"], ["-f", "{config}"], _HAPROXY % ""),
    Gateway("haproxy-abortonclose", "haproxy", ["-v"], ["-f", "{config}"], _HAPROXY % "option abortonclose"),
    Gateway(
        "litellm",
        "litellm",
        ["--version"],
        ["--host", "127.0.0.1", "--port", "{port}", "--config", "{config}", "--telemetry", "False"],
        _LITELLM % (MODEL_NAME, MODEL_NAME),
        ".yaml",
    ),
)
GATEWAYS: Final = {gateway.name: gateway for gateway in _ALL}


def _program(gateway: Gateway) -> str:
    program = shutil.which(gateway.program)
    if program is None:
        raise ConfigurationError(f"{gateway.name}: the program {gateway.program} is not on the PATH; install it first")
    return program


@contextlib.contextmanager
def started(gateway: Gateway, upstream: str) -> Iterator[str]:
    """Start a gateway, and end it with the block.

    Args:
        gateway: The gateway.
        upstream: Address of the model server behind it, without a path.

    Yields: Its own OpenAI-compatible address.

    Raises: ConfigurationError when its program is not installed; ServiceError when it does not answer, with the last
        line that it printed.
    """
    program, port = _program(gateway), _free_port()
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "output", "w+", encoding="utf-8") as output:
        config = Path(folder) / f"gateway{gateway.suffix}"
        filled = {"port": str(port), "upstream": urlsplit(upstream).netloc, "config": str(config), "folder": folder}
        config.write_text(gateway.config.format(**filled), encoding="utf-8")
        arguments = [argument.format(**filled) for argument in gateway.arguments]
        process = subprocess.Popen([program, *arguments], stdout=output, stderr=output, cwd=folder)
        try:
            base_url = f"http://127.0.0.1:{port}/v1"
            if not _answers(f"{base_url}/models", lambda: process.poll() is None):
                output.seek(0)
                lines = output.read().strip().splitlines() or ["nothing"]
                raise ServiceError(f"{gateway.name} did not start; it printed last: {lines[-1]}")
            yield base_url
        finally:
            process.terminate()
            try:
                process.wait(_END_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with contextlib.closing(bind(0)) as listener:
        return int(listener.getsockname()[1])


def _answers(url: str, is_alive: Callable[[], bool]) -> bool:
    until_s = time.monotonic() + _START_LIMIT_S
    while is_alive() and time.monotonic() < until_s:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, trust_env=False, timeout=5.0).status_code == 200:
                return True
        time.sleep(0.1)
    return False


def probe_gateway(gateway: Gateway, *, repeats: int = 2, progress: Progress | None = None) -> pd.DataFrame:
    """Leave calls that go through a gateway in each phase, and see when the server behind it ends its work.

    Args:
        gateway: The gateway; it is started for the probe.
        repeats: Trials of each phase and way of leaving.
        progress: Called with (trials done, all trials).

    Returns: A row for each trial: `gateway`, `version`, `measured_on`, and the fields of `Trial`.

    Raises: ConfigurationError when its program is not installed; ServiceError as `probe_server`.
    """
    _program(gateway)
    with ServiceProcess(ServiceOptions(profile=_BEHIND)) as service:
        addresses = service.addresses
        with started(gateway, addresses.openai_base_url.removesuffix("/v1")) as base_url:
            target = Target(base_url, MODEL_NAME, log_url=addresses.log_url)
            trials = probe_server(target, repeats=repeats, seconds=2.0, progress=progress).trials
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for column, value in (("measured_on", today), ("version", gateway.version_text()), ("gateway", gateway.name)):
        trials.insert(0, column, value)
    return trials


def as_markdown(trials: pd.DataFrame) -> str:
    """A table with a row for each gateway, and when the server behind it learned in each phase.

    Args:
        trials: As `probe_gateway` returns them, of one gateway or several.
    """
    lines = [
        f"| gateway | version | measured on | {' | '.join(phase.replace('_', ' ') for phase in PHASES)} |",
        f"|---|---|---|{'---|' * len(PHASES)}",
    ]
    for (gateway, version, day), rows in trials.groupby(["gateway", "version", "measured_on"], sort=False):
        cells = " | ".join(_when_told(rows[rows["phase"] == phase]) for phase in PHASES)
        lines.append(f"| {gateway} | {version} | {day} | {cells} |")
    return "\n".join(lines) + "\n"


def _when_told(rows: pd.DataFrame) -> str:
    """When the server behind a gateway ended its work, over the trials of a phase."""
    texts = []
    for ends, group in rows.groupby("work_ends"):
        worst_s = group["high_s"].max()
        text = {
            "at_once": f"within {max(worst_s, 0.01):.2f} s",
            "at_next_write": f"at its next write, {worst_s:.2f} s",
            "at_its_end": f"never: {group['low_s'].median():.1f} s more",
        }.get(str(ends), "; ".join(sorted(set(group["note"].dropna()))))
        texts.append(text if len(group) == len(rows) else f"{len(group)} of {len(rows)} {text}")
    return "; ".join(texts)
