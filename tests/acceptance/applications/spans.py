"""An application with OpenTelemetry of its own: 64 calls of `generate()` inside one span of it."""

import sys

import torch
from opentelemetry import trace
from small_model import make_model, make_tokenizer

CALLS = 64
TOKENS = 20

torch.set_num_threads(1)
model = make_model(make_tokenizer(), hidden=64, layers=2, heads=4, kv_heads=2)
ids = torch.randint(10, 300, (1, 20))
with trace.get_tracer("application").start_as_current_span("work") as span:
    for _ in range(CALLS):
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=TOKENS,
            min_new_tokens=TOKENS,
            do_sample=False,
        )
context = span.get_span_context()
print(
    f"{context.trace_id:032x}", f"{context.span_id:016x}", type(span).__name__, "sitecustomize" in sys.modules
)
