"""Whether model servers of this machine stop when their client leaves, each with a small model of random weights.

    trials = probe_model_server(SERVERS["transformers"])     # a row for each call that was left

The truth is a server's own counters, or else the processor time that it uses. Who waits in a queue uses none, so what
becomes of a call in the queue is told by how long another request waits, where others wait.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from benchmarks.tiny_server import TinyServer
from benchmarks.tiny_server import write_tiny_model as write_gguf
from docmind_lab.core.errors import ServiceError
from docmind_lab.core.progress import Progress
from docmind_lab.experiments.probe.probe_server import probe_server
from docmind_lab.experiments.probe.truth import Target, truth_of
from surveys.local_programs import LocalProgram, Running, started
from surveys.processor_log import ProcessorLog
from surveys.tiny_model import write_tiny_model

# One core, so that a call takes as long whatever else is computed; nothing is fetched.
_ALONE: Final = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
_ALL: Final = (
    LocalProgram(
        "transformers",
        "transformers",
        ["version"],
        ["serve", "{model}", "--host", "127.0.0.1", "--port", "{port}", "--device", "cpu"],
        variables=_ALONE,
    ),
    LocalProgram(
        "transformers-continuous-batching",
        "transformers",
        ["version"],
        ["serve", "{model}", "--host", "127.0.0.1", "--port", "{port}", "--device", "cpu", "--continuous-batching"],
        variables=_ALONE,
    ),
    LocalProgram(
        "mlx-lm",
        "mlx_lm",
        ["--version"],
        ["server", "--model", "{model}", "--port", "{port}"],
        variables=_ALONE,
    ),
    LocalProgram(
        "llama-cpp-python",
        "python3",
        ["-c", "import llama_cpp; print(llama_cpp.__version__)"],
        [
            "-m",
            "llama_cpp.server",
            "--model",
            "{gguf}",
            "--host",
            "127.0.0.1",
            "--port",
            "{port}",
            "--n_ctx",
            "16384",
            "--n_threads",
            "1",
        ],
        variables=_ALONE,
    ),
    LocalProgram(
        "vllm",
        "vllm",
        ["--version"],
        ["serve", "{model}", "--host", "127.0.0.1", "--port", "{port}", "--enforce-eager", "--max-num-seqs", "1"],
        variables={**_ALONE, "VLLM_CPU_KVCACHE_SPACE": "1"},
    ),
)
SERVERS: Final = {server.name: server for server in _ALL}
"""Name → how it is started. llama.cpp's own is started by `TinyServer`."""
LLAMA_CPP: Final = "llama.cpp"
_MOST_FAILURES: Final = 4
# Where a model of random weights would end its answer anywhere: the token that ends it (`write_gguf`) is left out.
_EXTRA: Final[Mapping[str, Mapping[str, Any]]] = {"llama-cpp-python": {"logit_bias": {"2": -100}}}


def probe_model_server(
    name: str, repeats: int = 3, *, seconds: float = 3.0, progress: Progress | None = None
) -> pd.DataFrame:
    """Leave calls to a server in each phase, and see when its work on them ends.

    Args:
        name: One of SERVERS, or "llama.cpp".
        repeats: Trials of each phase and way of leaving.
        seconds: How long an answer should take, about.
        progress: Called with (trials done, all trials).

    Returns: A row for each trial: `name`, `version`, `measured_on`, and the fields of `Trial`.

    Raises: ConfigurationError when its program is not installed; ServiceError as `probe_server`.
    """
    with _running(name) as (running, model, version), contextlib.ExitStack() as stack:
        target = Target(running.base_url, model, extra=_EXTRA.get(name, {}))
        if truth_of(target) is not None:
            trials = _trials(target, repeats, seconds, progress)
        else:
            by_waiting = _trials(target, repeats, seconds, progress, by_waiting=True)
            log = stack.enter_context(ProcessorLog(running.pid))
            trials = _trials(replace(target, log_url=log.url), repeats, seconds, progress)
            # Processor time counts no tokens, and says nothing of the queue.
            trials = trials.assign(late_tokens=None, evidence="processor time")[trials["phase"] != "queue"]
            trials = pd.concat([by_waiting[by_waiting["phase"] == "queue"], trials])
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for column, value in (("measured_on", today), ("version", version), ("name", name)):
        trials.insert(0, column, value)
    return trials


def _trials(
    target: Target, repeats: int, seconds: float, progress: Progress | None, *, by_waiting: bool = False
) -> pd.DataFrame:
    """A trial of each phase and way of leaving, so many times over.

    Each time is judged by its own calls that nobody left. If their speed changed meanwhile, it is made anew, whole.
    """
    made: list[pd.DataFrame] = []
    failures = 0
    while len(made) < repeats:
        try:
            probed = probe_server(
                target, repeats=1, seconds=seconds, most_tokens=4096, by_waiting=by_waiting, progress=progress
            )
        except ServiceError:
            failures += 1
            if failures > _MOST_FAILURES:
                raise
        else:
            made.append(probed.trials.assign(repeat=len(made) + 1))
    return pd.concat(made)


@contextlib.contextmanager
def _running(name: str) -> Iterator[tuple[Running, str, str]]:
    """The server, what it calls its model, and its version."""
    if name == LLAMA_CPP:
        with TinyServer() as server:
            yield Running(server.base_url, 0), "tiny", importlib.metadata.version("xllamacpp")
        return
    with tempfile.TemporaryDirectory(prefix="tiny-model-") as folder:
        model, gguf = Path(folder, "tiny"), Path(folder, "tiny.gguf")
        write_tiny_model(model)
        write_gguf(gguf)
        version = SERVERS[name].version_text()
        with started(SERVERS[name], model=str(model), gguf=str(gguf)) as running:
            yield running, str(model), version
