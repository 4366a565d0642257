"""A program that asks a model once: its question on standard input, its answer on standard output.

    python agent_program.py plain|deaf|forking|failing|silent|handling [timeout in seconds]

deaf ignores SIGTERM. forking leaves a child that sleeps. failing ends with an error before it asks, silent answers
without asking. handling writes what it has when it is told to stop.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request

HABIT = sys.argv[1]
TIMEOUT_S = float(sys.argv[2]) if len(sys.argv) > 2 else float(os.environ.get("DECISION_TIMEOUT_S", 86_400))


def stopped(number: int, frame: object) -> None:
    print("a draft")
    sys.exit(0)


def main() -> None:
    question = sys.stdin.read().strip()
    if HABIT == "failing":
        sys.exit("no such thing as a model")
    if HABIT == "silent":
        print("an answer from nowhere")
        return
    if HABIT == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if HABIT == "handling":
        signal.signal(signal.SIGTERM, stopped)
    if HABIT == "forking":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(child.pid, file=sys.stderr)
    body = {"model": "any-model", "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        print(json.load(response)["choices"][0]["message"]["content"])


main()
