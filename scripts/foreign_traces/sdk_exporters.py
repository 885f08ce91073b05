"""The same spans of a chat, written by each of the Python SDK's exporters.

Usage: sdk_exporters.py RECEIVER_URL FOLDER. The spans follow the GenAI conventions, as those of an
application that instruments itself.
"""

import sys
from pathlib import Path

from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter as JsonExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.zipkin.json import ZipkinExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

BEGIN, MS = 1_780_000_000_000_000_000, 1_000_000
receiver, folder = sys.argv[1], Path(sys.argv[2])
provider = TracerProvider(resource=Resource.create({"service.name": "own-application"}))
console = open(folder / "sdk-console.txt", "w")
for exporter in (
    ConsoleSpanExporter(out=console),
    FileSpanExporter(str(folder / "sdk-file.jsonl")),
    JsonExporter(endpoint=f"{receiver}/sdk/v1/traces"),
    OTLPSpanExporter(endpoint=f"{receiver}/sdk/v1/traces"),
    ZipkinExporter(endpoint=f"{receiver}/sdk-zipkin/api/v2/spans"),
):
    provider.add_span_processor(SimpleSpanProcessor(exporter))
tracer = provider.get_tracer("own.chat", "1.0")

with tracer.start_as_current_span("answer", start_time=BEGIN, end_on_exit=False) as around:
    for number in range(3):
        begin = BEGIN + number * 2_000 * MS
        chat = tracer.start_span(
            "chat small-llama",
            kind=SpanKind.CLIENT,
            start_time=begin,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "vllm",
                "gen_ai.request.model": "small-llama",
                "gen_ai.request.max_tokens": 64,
                "gen_ai.response.time_to_first_chunk": 0.25 + number / 10,
                "gen_ai.response.finish_reasons": ["length"],
                "gen_ai.usage.input_tokens": 100 + number,
                "gen_ai.usage.output_tokens": 64,
            },
        )
        chat.add_event("answer began", timestamp=begin + 250 * MS)
        if number == 2:
            chat.set_attribute("error.type", "TimeoutError")
            chat.set_status(Status(StatusCode.ERROR, "no answer in time"))
        chat.end(begin + 1_500 * MS + 123)
    around.end(BEGIN + 6_000 * MS)
provider.shutdown()
console.close()
