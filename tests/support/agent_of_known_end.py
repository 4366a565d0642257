"""An agent of the standard library alone, whose end is known for each way.

As thread.py of a case it keeps each message at once in the file CASE_THREAD, and so also a call that was cut.
"""

import http.client
import json
import os
import sys
import threading
from pathlib import Path
from urllib.parse import quote, urlsplit

WAY, TIMEOUT_S = os.environ["CASE_WAY"], float(os.environ["CASE_TIMEOUT_S"])
MODEL, TOOL = urlsplit(os.environ["OPENAI_BASE_URL"]), urlsplit(os.environ["CASE_TOOL_URL"])
OFFERED = {"name": "lookup", "parameters": {"properties": {"query": {"type": "string"}}}}
THREAD = Path(os.environ.get("CASE_THREAD", os.devnull))
connections: list[http.client.HTTPConnection] = []
messages: list[dict] = json.loads(THREAD.read_text() or "[]") if THREAD.exists() else []
problems: list[str] = []


def send(address, method: str, path: str, body: str | None = None) -> str:
    connections.append(http.client.HTTPConnection(address.hostname, address.port))
    connections[-1].request(method, path, body)
    return connections[-1].getresponse().read().decode()


def keep(message: dict) -> dict:
    messages.append(message)
    THREAD.write_text(json.dumps(messages))
    return message


def ask() -> dict:
    body = {"model": "any", "messages": messages, "tools": [{"type": "function", "function": OFFERED}]}
    answer = json.loads(send(MODEL, "POST", f"{MODEL.path}/chat/completions", json.dumps(body)))
    if "choices" not in answer:
        problems.append(json.dumps(answer))
        sys.exit()
    return keep(answer["choices"][0]["message"])


def work() -> None:
    keep({"role": "user", "content": os.environ["CASE_QUESTION"]})
    for call in ask().get("tool_calls") or ():
        query = json.loads(call["function"]["arguments"])["query"]
        found = send(TOOL, "GET", f"{TOOL.path}?query={quote(query)}")
        keep({"role": "tool", "tool_call_id": call["id"], "content": found})
        assert ask()["content"]


def say(**what) -> None:
    print(json.dumps(what), flush=True)


print("a line of the framework's own")
calls = sum(len(message.get("tool_calls") or ()) for message in messages)
open_calls = calls - sum(message["role"] == "tool" for message in messages)
say(event="start", messages=len(messages), open_tool_calls=open_calls)
outcome, error = "timeout", "TimeoutError: time is up"
worker = threading.Thread(target=work, daemon=True)
if WAY == "breaks":
    outcome, error = "error", "KeyError: lookup"
elif WAY == "dies":
    sys.exit("the last words")
else:
    worker.start()
    ways = {"waits": None, "kill": None, "hurries": 1.0}
    worker.join(None if os.environ.get("CASE_STEP") == "next" else ways.get(WAY, TIMEOUT_S))
if not worker.is_alive() and "CASE_STEP" in os.environ:
    outcome, error = ("error", problems[0]) if problems else ("answer", "")
if WAY in ("stops", "stays"):
    connections[-1].sock.shutdown(2)
if WAY == "stays":
    threading.Thread(target=threading.Event().wait).start()
say(event="end", outcome=outcome, error=error, left={"messages": 2, "open_tool_calls": 1})
sys.stdin.read()
