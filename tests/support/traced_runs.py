"""A query and a comparison in a process whose environment asks for traces; prints the requests that a sink had.

The environment names the sink: LANGSMITH_ENDPOINT, and HTTP_PROXY as a second way out.
"""

from __future__ import annotations

import json
import os

from chat_replies import answering, reply
from stub_server import StubServer


def main() -> None:
    sink = StubServer(answering(reply(b"{}")))
    os.environ |= {
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_API_KEY": "none",
        # Reaches this machine, and is no loopback address: the allowlist refuses it.
        "LANGSMITH_ENDPOINT": f"http://0.0.0.0:{sink.port}",
        "HTTP_PROXY": sink.url,
        "http_proxy": sink.url,
    }
    from langchain_core.runnables import RunnableLambda
    from langsmith.run_trees import get_cached_client

    from docmind_lab import Live, compare
    from docmind_lab.core.settings import Settings
    from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

    settings, noted = Settings(), {}

    def note(name: str) -> None:
        noted[name] = [f"{request.method} {request.path}" for request in sink.requests]
        sink.requests.clear()

    with MultiAgentCoordinator(settings) as coordinator:
        response = coordinator.process_query("What does a hard timeout leave running?")
    note("query")
    compare(decision_timeout_s=3.0, alternatives="B", world=Live(settings=settings, latencies="fast"), runs=1)
    note("run")
    RunnableLambda(lambda text: text).invoke("outside of any run")
    get_cached_client().flush()
    note("outside")
    print(json.dumps({**noted, "outcome": response.metadata["outcome"]}))


if __name__ == "__main__":
    main()
