"""A query and a comparison in a process whose environment asks for traces; prints how many requests a sink had.

The environment names the sink: LANGSMITH_ENDPOINT, and HTTP_PROXY as a second way out. Arguments: "runs" for a query
to a coordinator and a comparison, "blocks" for the blocks that they run in, "refused" for all that a query sends where
its host is refused; then the hosts that the settings allow.
"""

from __future__ import annotations

import http.server
import json
import os
import sys
import threading

requests: list[str] = []


class Sink(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer()

    def _answer(self) -> None:
        requests.append(f"{self.command} {self.path}")
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Reaches this machine, and is no loopback address: the allowlist refuses it.
    at = f"http://0.0.0.0:{server.server_port}"
    os.environ |= {
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_API_KEY": "none",
        "LANGSMITH_ENDPOINT": at,
        "HTTP_PROXY": f"http://127.0.0.1:{server.server_port}",
        "http_proxy": f"http://127.0.0.1:{server.server_port}",
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
        counts[name] = len([request for request in requests if request.startswith("POST")])
        requests.clear()

    if what == "refused":
        before = set(threading.enumerate())
        with langsmith_tracing.tracing_where_admitted(settings):
            chain.invoke("in a query")
        # A client for traces asks for the server's version from a thread of its own, with the key.
        counts["threads"] = sorted(thread.name for thread in set(threading.enumerate()) - before)
        counts["requests"] = list(requests)
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
