"""Asks a server through OpenAI's client, which one of three instrumentations watches.

Usage: ask_server.py openinference|openllmetry|genai SERVER_URL RECEIVER_URL MODEL
"""

import sys

import openai
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

watcher, server, receiver, model = sys.argv[1:]
endpoint = f"{receiver}/{watcher}/v1/traces"
provider = TracerProvider(resource=Resource.create({"service.name": "chat-application"}))

if watcher == "openinference":
    from openinference.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter as JsonExporter

    provider.add_span_processor(BatchSpanProcessor(JsonExporter(endpoint=endpoint)))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
else:
    if watcher == "genai":  # OpenTelemetry's own, by its conventions
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
    else:
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    OpenAIInstrumentor().instrument(tracer_provider=provider)

client = openai.OpenAI(base_url=f"{server}/v1", api_key="none")
more = {"temperature": 0, "extra_body": {"ignore_eos": True}}
streamed = {"stream": True, "stream_options": {"include_usage": True}, **more}
for question, tokens in (("How far is the moon?", 24), ("Why do leaves change colour? " * 20, 40)):
    said = [{"role": "user", "content": question}]
    stream = client.chat.completions.create(
        model=model,
        messages=said,
        max_tokens=tokens,
        stream=True,
        stream_options={"include_usage": True},
        **more,
    )
    print("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)[:40])
client.chat.completions.create(model=model, messages=said, max_tokens=16, **more)
client.completions.create(model=model, prompt="Bread.", max_tokens=8, **more)
provider.shutdown()
