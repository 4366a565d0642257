"""A real model server on this machine: llama.cpp's, with a tiny model of random weights.

    with TinyServer() as server:
        ChatOpenAI(base_url=server.base_url, api_key="unused", model="tiny").invoke("Go on.")

Its text means nothing, but its time is real: each token is computed, one request after the other. It needs the extra
`live` (xllamacpp, gguf). `python -m benchmarks.tiny_server MODEL.gguf` serves until its input ends.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np

from docmind_lab.core.errors import ConfigurationError, ServiceError

MODULES: Final = ("xllamacpp", "gguf")

_WIDTH, _LAYERS, _HEADS, _CONTEXT = 256, 4, 4, 4096
_SPECIAL = ("<unk>", "<s>", "</s>")
_LETTERS = tuple("▁abcdefghijklmnopqrstuvwxyz.,?")


class TinyServer:
    """llama.cpp's server in a process of its own, from construction until `close`.

    The process also ends with the one that started it. Requests are served one at a time, on one core, so that the
    latency of a call follows from the length of its answer.

    Raises: ConfigurationError: the extra `live` is not installed. ServiceError: the server did not start; its own log
    is on standard error.
    """

    def __init__(self) -> None:
        missing = [name for name in MODULES if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigurationError(
                f"{' and '.join(missing)} not installed: pip install 'docmind_lab[live]', or name the address of a "
                "server of your own"
            )
        self._folder = tempfile.TemporaryDirectory(prefix="tiny-server-")
        command = [sys.executable, "-m", __name__, str(Path(self._folder.name) / "tiny.gguf")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        first_line = self._process.stdout.readline()
        if not first_line:
            self.close()
            raise ServiceError("llama.cpp's server did not start; see its log above")
        self.base_url: str = f"{json.loads(first_line)}/v1"

    def close(self) -> None:
        """End the server and delete its model. Does nothing the second time."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TinyServer({self.base_url!r})"


def write_tiny_model(path: Path, seed: int = 0) -> None:
    """Write a small Llama of random weights, with a tokenizer of bytes and letters, as a GGUF file of 14 MB."""
    # Function-level: of the extra `live`.
    import gguf

    tokens = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *_LETTERS]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(_LETTERS)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(4 * _WIDTH)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }} {% endfor %}")
    rng = np.random.default_rng(seed)
    shapes = {"token_embd": (len(tokens), _WIDTH), "output": (len(tokens), _WIDTH)}
    for layer in range(_LAYERS):
        shapes |= {f"blk.{layer}.{name}": (_WIDTH, _WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
        shapes |= {f"blk.{layer}.{name}": (4 * _WIDTH, _WIDTH) for name in ("ffn_gate", "ffn_up")}
        shapes |= {f"blk.{layer}.ffn_down": (_WIDTH, 4 * _WIDTH)}
    for name, shape in shapes.items():
        weights = rng.standard_normal(shape).astype(np.float32) / np.sqrt(np.float32(shape[1]))
        writer.add_tensor(f"{name}.weight", weights)
    for name in ("output_norm", *(f"blk.{n}.{norm}" for n in range(_LAYERS) for norm in ("attn_norm", "ffn_norm"))):
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _serve(path: Path) -> None:
    """Serve this model, made if it is not there; print the address as JSON, and end with the input."""
    # Function-level: of the extra `live`.
    import xllamacpp

    if not path.exists():
        write_tiny_model(path)
    # Ctrl-C, or an interrupted cell of a notebook, reaches the whole group of processes. It is not meant for this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.verbosity = 1  # errors only: its log has eight lines for each request
    params.n_parallel, params.n_ctx, params.cpuparams.n_threads = 1, _CONTEXT, 1
    params.endpoint_slots, params.endpoint_metrics = True, True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{json.dumps(server.listening_address)}\n")
    sys.stdout.flush()
    sys.stdin.read()
    # The server's own end waits for ever when requests are under way.
    os._exit(0)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
