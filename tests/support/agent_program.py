"""A program that asks a model once: its question on standard input, its answer on standard output.

    python agent_program.py plain|deaf|forking|failing|silent|handling|leaving|knowing [timeout in seconds]

deaf ignores SIGTERM. forking leaves a child that sleeps. failing ends with an error before it asks, silent answers
without asking. handling writes what it has when it is told to stop; leaving does too, and leaves a child that ignores
SIGTERM. knowing gives up shortly before the deadline in its environment, with what it has.
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
# What the interpreter needs to start and to end.
KNOWN_S = float(os.environ.get("DOCMIND_DEADLINE_S", 86_400)) - 0.5
_SLEEPS = "import time; time.sleep(600)"
_SLEEPS_ON = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); {_SLEEPS}"


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
    if HABIT in ("handling", "leaving"):
        signal.signal(signal.SIGTERM, stopped)
    if HABIT == "forking":
        subprocess.Popen([sys.executable, "-c", _SLEEPS])
    if HABIT == "leaving":
        child = subprocess.Popen([sys.executable, "-c", _SLEEPS_ON], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
    body = {"model": "any-model", "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=KNOWN_S if HABIT == "knowing" else TIMEOUT_S) as response:
            print(json.load(response)["choices"][0]["message"]["content"])
    except TimeoutError:
        if HABIT != "knowing":
            raise
        print("a draft")
        sys.exit(124)


main()
