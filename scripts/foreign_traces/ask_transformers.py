"""Generates with transformers, which one of two instrumentations watches.

Usage: ask_transformers.py openllmetry|openlit RECEIVER_URL FOLDER_OF_SMALL_MODEL
"""

import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

watcher, receiver, examples = sys.argv[1:]
sys.path.insert(0, examples)
endpoint = f"{receiver}/{watcher}-transformers"
provider = TracerProvider(resource=Resource.create({"service.name": "pipeline-application"}))

if watcher == "openllmetry":
    from opentelemetry.instrumentation.transformers import TransformersInstrumentor

    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")))
    TransformersInstrumentor().instrument(tracer_provider=provider)
else:
    import openlit

    openlit.init(
        service_name="pipeline-application",
        otlp_endpoint=endpoint,
        capture_message_content=False,
        disable_batch=True,
    )

from small_model import make_model, make_tokenizer  # noqa: E402
from transformers import pipeline  # noqa: E402

tokenizer = make_tokenizer()
model = make_model(tokenizer, hidden=64, layers=2, heads=4, kv_heads=2)
model.name_or_path = model.config._name_or_path = "small-llama"
generate = pipeline("text-generation", model=model, tokenizer=tokenizer)
for question in ("How far is the moon?", "Why do leaves change colour in the autumn? " * 5):
    generate(question, max_new_tokens=32, min_new_tokens=32, do_sample=False)
provider.shutdown()
