"""Real OTLP receivers over HTTP and gRPC, that take, are slow, or refuse."""

from __future__ import annotations

import gzip
import ssl
import threading
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

RETRY_AT_ONCE = {"Retry-After": "0"}


@dataclass
class Received:
    """What a receiver got, and how it is to answer."""

    status: int | grpc.StatusCode | None = None  # None: accept
    fail_first: int = 0  # requests to refuse before the others are accepted
    reject: int = 0  # spans to reject of each request
    hold: threading.Event = field(default_factory=threading.Event)  # answers wait for it when `slow`
    slow: bool = False
    requests: int = 0
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def refuses(self) -> bool:
        self.requests += 1
        if self.slow:
            self.hold.wait(30)
        if self.fail_first:
            self.fail_first -= 1
            return True
        return self.status is not None

    def take(self, request: trace_service_pb2.ExportTraceServiceRequest) -> Any:
        for resource in request.resource_spans:
            pairs = {p.key: p.value.string_value for p in resource.resource.attributes}
            self.resources.append(pairs)
            for scope in resource.scope_spans:
                self.spans += scope.spans
        answer = trace_service_pb2.ExportTraceServiceResponse()
        if self.reject:
            answer.partial_success.rejected_spans = self.reject
            answer.partial_success.error_message = "too many spans"
        return answer

    def take_metrics(self, request: metrics_service_pb2.ExportMetricsServiceRequest) -> None:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics += scope.metrics


class HttpReceiver(Received):
    """An OTLP/HTTP receiver on a free port."""

    def __init__(self, certificate: tuple[Path, Path] | None = None, **answers: Any) -> None:
        super().__init__(**answers)
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.headers.append({k.lower(): v for k, v in self.headers.items()})
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = b""
                if self.path == "/v1/metrics":
                    parsed = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
                    received.take_metrics(parsed)
                elif received.refuses():
                    self.answer(int(received.status or 503), b"")
                    return
                else:
                    request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
                    answer = received.take(request).SerializeToString()
                self.answer(200, answer)

            def answer(self, status: int, body: bytes) -> None:
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    for name, value in RETRY_AT_ONCE.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the sender has given up

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcReceiver(Received):
    """An OTLP/gRPC receiver on a free port."""

    def __init__(self, certificate: tuple[Path, Path] | None = None, **answers: Any) -> None:
        super().__init__(**answers)
        received = self

        class Traces(trace_service_pb2_grpc.TraceServiceServicer):
            def Export(self, request: Any, context: grpc.ServicerContext) -> Any:
                received.headers.append({k: str(v) for k, v in context.invocation_metadata()})
                if received.refuses():
                    code = received.status
                    context.abort(
                        code if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNAVAILABLE, "no"
                    )
                return received.take(request)

        class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
            def Export(self, request: Any, context: grpc.ServicerContext) -> Any:
                received.take_metrics(request)
                return metrics_service_pb2.ExportMetricsServiceResponse()

        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(), self._server)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Metrics(), self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.url = f"grpc://127.0.0.1:{port}"
        self._server.start()

    def stop(self) -> None:
        self.hold.set()
        self._server.stop(None).wait()
