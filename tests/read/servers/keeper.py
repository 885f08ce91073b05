"""A server that keeps traces and answers as Jaeger or Tempo document it: neither can be installed here."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, bytes] | None  # status and body; None is 404
Pages = Callable[[str, dict[str, str]], Answer]  # by path and query


class Keeper:
    """On a free port; remembers what it was asked."""

    def __init__(self, pages: Pages, headers: Mapping[str, str]) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        keeper = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = dict(parse_qsl(parts.query))
                keeper.asked.append((parts.path, query))
                keeper.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, body = pages(parts.path, query) or (404, b"not found")
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def say(value: Any) -> Answer:
    return 200, json.dumps(value).encode()


def jaeger_3(find: Callable[[dict[str, str]], Any]) -> Pages:
    """API v3: a search that finds nothing is not found."""

    def pages(path: str, query: dict[str, str]) -> Answer:
        if path == "/api/v3/services":
            return say({"services": ["vllm-test"]})
        if path == "/api/v3/traces":
            found = find(query)
            none = {"error": {"httpCode": 404, "message": "No traces found"}}
            return (404, json.dumps(none).encode()) if found is None else say({"result": found})
        return None

    return pages


def jaeger_1(find: Callable[[dict[str, str]], Any], services: list[str]) -> Pages:
    """Before API v3; what it does not know it answers with its page, as it does."""

    def pages(path: str, query: dict[str, str]) -> Answer:
        if path == "/api/services":
            return say({"data": services, "total": len(services), "errors": None})
        if path == "/api/traces":
            return say(find(query))
        return 200, b"<!doctype html><title>Jaeger UI</title>"

    return pages


def tempo(traces: dict[str, Any], older: bool = False) -> Pages:
    """A search, and each trace by its id; packed."""

    def pages(path: str, query: dict[str, str]) -> Answer:
        if path == "/api/search":
            found = [{"traceID": trace.lstrip("0"), "rootServiceName": "vllm-test"} for trace in traces]
            return say({"traces": found[: int(query["limit"])], "metrics": {}})
        begin = "/api/traces/" if older else "/api/v2/traces/"
        if path.startswith(begin) and (trace := traces.get(path.removeprefix(begin))) is not None:
            return 200, gzip.compress(json.dumps(trace).encode())
        return None

    return pages
