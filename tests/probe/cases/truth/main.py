"""An agent of the standard library alone, whose end is known for each way."""

import http.client
import json
import os
import sys
import threading
from urllib.parse import quote, urlsplit

WAY, TIMEOUT_S = os.environ["CASE_WAY"], float(os.environ["CASE_TIMEOUT_S"])
MODEL, TOOL = urlsplit(os.environ["OPENAI_BASE_URL"]), urlsplit(os.environ["CASE_TOOL_URL"])
OFFERED = {"name": "lookup", "parameters": {"properties": {"query": {"type": "string"}}}}
connections: list[http.client.HTTPConnection] = []


def send(address, method: str, path: str, body: str | None = None) -> str:
    connections.append(http.client.HTTPConnection(address.hostname, address.port))
    connections[-1].request(method, path, body)
    return connections[-1].getresponse().read().decode()


def ask(messages: list) -> dict:
    tools = [{"type": "function", "function": OFFERED}]
    body = {"model": os.environ["OPENAI_MODEL"], "messages": messages, "tools": tools}
    return json.loads(send(MODEL, "POST", f"{MODEL.path}/chat/completions", json.dumps(body)))["choices"][0]["message"]


def work() -> None:
    messages = [{"role": "user", "content": os.environ["CASE_QUESTION"]}]
    messages.append(ask(messages))
    (call,) = messages[-1]["tool_calls"]
    query = json.loads(call["function"]["arguments"])["query"]
    found = send(TOOL, "GET", f"{TOOL.path}?query={quote(query)}")
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})
    assert ask(messages)["content"]


def say(**what) -> None:
    print(json.dumps(what), flush=True)


print("a line of the framework's own")
say(event="start")
outcome, error = "timeout", "TimeoutError: time is up"
worker = threading.Thread(target=work, daemon=True)
if WAY == "breaks":
    outcome, error = "error", "KeyError: lookup"
elif WAY == "dies":
    sys.exit("the last words")
else:
    worker.start()
    worker.join({"waits": None, "hurries": 1.0}.get(WAY, TIMEOUT_S))
if WAY in ("stops", "stays"):
    connections[-1].sock.shutdown(2)
if WAY == "stays":
    threading.Thread(target=threading.Event().wait).start()
say(event="end", outcome=outcome, error=error, left={"messages": 2, "open_tool_calls": 1})
sys.stdin.read()
