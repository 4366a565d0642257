"""When a program of this machine was at work, by the processor time that it used: a log for a server that keeps none.

with ProcessorLog(process.pid) as log:
    Target(base_url, "tiny", log_url=log.url)
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

import psutil

from docmind_lab.services.log import RequestRow

_LOOK_S: Final = 0.05
# Between two looks a program that computes uses at least so much of a core, even where it has to share it, and one that
# waits for requests hardly any.
_AT_WORK_S: Final = 0.02
_QUIET_S: Final = 0.2


class ProcessorLog:
    """Looks every 50 ms at what a process and its children have used, and answers as the log of the lab's service does.

    It does not know which request the work is for: so there must be one at a time, and one row is the answer for each.

    Args:
        pid: The process.
    """

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._began_at = self._busy_at = time.monotonic()
        self._end = threading.Event()
        log = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                row = log.row(float(query.get("wait_quiet_s", ["0"])[0]))
                content = json.dumps({"rows": [asdict(row)]}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the library
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/log"
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._watch, self._server.serve_forever)]

    def row(self, wait_quiet_s: float) -> RequestRow:
        """The last work, after waiting at most so many seconds for the process to be quiet."""
        until_s = time.monotonic() + wait_quiet_s
        while self._is_at_work and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
        is_open = self._is_at_work
        row = RequestRow("llm", "", "", 1, "", "", self._began_at, outcome="open" if is_open else "ok")
        # Work that ended between two looks may have ended just before the later one.
        row.ended_at = None if is_open else self._busy_at + _LOOK_S
        return row

    @property
    def _is_at_work(self) -> bool:
        return time.monotonic() - self._busy_at < _QUIET_S

    def _watch(self) -> None:
        used_s = self._used_s()
        while not self._end.wait(_LOOK_S):
            now_s = self._used_s()
            if now_s - used_s >= _AT_WORK_S:
                self._busy_at = time.monotonic()
            used_s = now_s

    def _used_s(self) -> float:
        total = 0.0
        with contextlib.suppress(psutil.Error):
            for process in (self._process, *self._process.children(recursive=True)):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()
