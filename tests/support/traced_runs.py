"""A query and a comparison in a process whose environment asks for traces; prints how many requests a sink had.

The environment names the sink: LANGSMITH_ENDPOINT, and HTTP_PROXY as a second way out. Arguments: "runs" for a query
to a coordinator and a comparison, "blocks" for the blocks that they run in, "refused" for all that a query sends where
its host is refused; then the hosts that the settings allow.
"""

from __future__ import annotations

import json
import os
import sys
import threading

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
    from langsmith import Client
    from langsmith.run_trees import get_cached_client

    from docmind_lab.core.deadlines import Deadline
    from docmind_lab.core.settings import Settings
    from docmind_lab.network import langsmith_tracing
    from docmind_lab.network.recorder import Recorder, recording

    what, allowed = sys.argv[1], sys.argv[2:]
    settings = Settings(security={"allow_remote_endpoints": bool(allowed), "endpoint_allowlist": allowed})
    chain = RunnableLambda(lambda text: text)
    counts: dict[str, object] = {}

    def count(name: str, client: Client | None = None) -> None:
        (client or get_cached_client()).flush()
        # What a client asks of the server's version holds nothing of a run.
        counts[name] = len([request for request in sink.requests if request.method == "POST"])
        sink.requests.clear()

    if what == "refused":
        before = set(threading.enumerate())
        with langsmith_tracing.tracing_where_admitted(settings):
            chain.invoke("in a query")
        # A client for traces asks for the server's version from a thread of its own, with the key.
        counts["threads"] = sorted(thread.name for thread in set(threading.enumerate()) - before)
        counts["requests"] = [f"{request.method} {request.path}" for request in sink.requests]
    elif what == "blocks":
        with recording(Recorder("run", 1, Deadline.after(1.0))):
            chain.invoke("in a run")
        count("run")
        with langsmith_tracing.tracing_where_admitted(settings):
            chain.invoke("in a query")
        count("query", langsmith_tracing._direct_client() if allowed else None)
    else:
        from docmind_lab import Live, compare
        from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

        with MultiAgentCoordinator(settings) as coordinator:
            response = coordinator.process_query("What does a hard timeout leave running?")
            counts["outcome"] = response.metadata["outcome"]
        count("query", langsmith_tracing._direct_client() if allowed else None)
        compare(decision_timeout_s=3.0, alternatives="A,B,C", world=Live(settings=settings, latencies="fast"), runs=1)
        count("run")
    chain.invoke("outside of any run")
    count("outside")
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
