"""Whether a gateway tells the model server behind it that the client has left: the probe of a server, through it.

    trials = probe_gateway(GATEWAYS["caddy"])       # a row for each call that was left

The server is the lab's own, which stops at once when it is told, and whose log has when that was.
"""

from __future__ import annotations

import datetime
from typing import Final
from urllib.parse import urlsplit

import pandas as pd

from docmind_lab.core.progress import Progress
from docmind_lab.experiments.probe.probe_server import probe_server
from docmind_lab.experiments.probe.truth import Target
from docmind_lab.services.openai_service import MODEL_NAME
from docmind_lab.services.server import ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.quantiles import QuantileTable
from surveys.local_programs import LocalProgram, started

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
general_settings: {{dangerously_permit_weak_or_unset_master_key: true%s}}
"""
_LITELLM_ARGUMENTS: Final = ("--host", "127.0.0.1", "--port", "{port}", "--config", "{config}", "--telemetry", "False")
_ALL: Final = (
    LocalProgram(
        "caddy", "caddy", ["version"], ["reverse-proxy", "--from", "http://127.0.0.1:{port}", "--to", "{upstream}"]
    ),
    LocalProgram("nginx", "nginx", ["-v"], ["-c", "{config}"], _NGINX % ""),
    LocalProgram(
        "nginx-ignore-client-abort", "nginx", ["-v"], ["-c", "{config}"], _NGINX % "proxy_ignore_client_abort on;"
    ),
    LocalProgram("nginx-proxy-buffering-off", "nginx", ["-v"], ["-c", "{config}"], _NGINX % "proxy_buffering off;"),
    LocalProgram("haproxy", "haproxy", ["-v"], ["-f", "{config}"], _HAPROXY % ""),
    LocalProgram("haproxy-abortonclose", "haproxy", ["-v"], ["-f", "{config}"], _HAPROXY % "option abortonclose"),
    *(
        LocalProgram(
            name, "litellm", ["--version"], _LITELLM_ARGUMENTS, _LITELLM % (MODEL_NAME, MODEL_NAME, setting), ".yaml"
        )
        for name, setting in (("litellm", ""), ("litellm-cancel-on-disconnect", ", cancel_on_disconnect: true"))
    ),
)
GATEWAYS: Final = {gateway.name: gateway for gateway in _ALL}


def probe_gateway(gateway: LocalProgram, repeats: int = 3, progress: Progress | None = None) -> pd.DataFrame:
    """Leave calls that go through a gateway in each phase, and see when the server behind it ends its work.

    Args:
        gateway: The gateway; it is started for the probe.
        repeats: Trials of each phase and way of leaving.
        progress: Called with (trials done, all trials).

    Returns: A row for each trial: `name`, `version`, `measured_on`, and the fields of `Trial`.

    Raises: ConfigurationError when its program is not installed; ServiceError as `probe_server`.
    """
    version = gateway.version_text()
    with ServiceProcess(ServiceOptions(profile=_BEHIND)) as service:
        addresses = service.addresses
        with started(gateway, upstream=urlsplit(addresses.openai_base_url).netloc) as running:
            target = Target(running.base_url, MODEL_NAME, log_url=addresses.log_url)
            trials = probe_server(target, repeats=repeats, seconds=2.0, progress=progress).trials
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for column, value in (("measured_on", today), ("version", version), ("name", gateway.name)):
        trials.insert(0, column, value)
    return trials
