"""llama.cpp's server with a small model of random weights, until its input ends; prints its address as JSON.

python tests/recordings/serve_tiny_llama.py MODEL.gguf      # the file is made if it is not there
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import xllamacpp

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tiny_llama import write_tiny_llama


def main() -> None:
    """Serve until the input ends, as it does with the process that holds it."""
    path = Path(sys.argv[1])
    if not path.exists():
        write_tiny_llama(path)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    # One call after the other, on one core: its latency is then the length of its answer.
    params.n_parallel, params.n_ctx, params.cpuparams.n_threads = 1, 4096, 1
    server = xllamacpp.Server(params)
    print(json.dumps(server.listening_address), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
