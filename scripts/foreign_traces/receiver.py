"""Keeps what OTLP/HTTP exporters send, as it came: a POST to /NAME/v1/traces goes to NAME.json or NAME.pb.

Usage: receiver.py FOLDER PORT. A JSON body becomes a line; protobuf bodies end to end are one body again.
"""

import gzip
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Keeper(BaseHTTPRequestHandler):
    folder = Path()

    def do_POST(self) -> None:
        body = self.body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        name = self.path.strip("/").split("/")[0]
        is_json = "json" in self.headers.get("Content-Type", "")
        if "trace" in self.path or "spans" in self.path:
            with open(self.folder / f"{name}.{'json' if is_json else 'pb'}", "ab") as file:
                file.write(body + b"\n" * is_json)
        self.send_response(200)
        self.send_header("Content-Type", self.headers.get("Content-Type", ""))
        answer = b"{}" if is_json else b""
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers["Content-Length"]))
        pieces = []
        while size := int(self.rfile.readline(), 16):  # JavaScript's exporters send so
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    Keeper.folder = Path(sys.argv[1])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Keeper).serve_forever()
