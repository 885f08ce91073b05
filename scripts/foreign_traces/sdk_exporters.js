// Spans of a chat, sent by the JavaScript SDK's OTLP/HTTP exporter, which speaks JSON.
// Usage: node sdk_exporters.js RECEIVER_URL
const { SpanKind, SpanStatusCode } = require("@opentelemetry/api");
const { NodeTracerProvider, SimpleSpanProcessor } = require("@opentelemetry/sdk-trace-node");
const { OTLPTraceExporter } = require("@opentelemetry/exporter-trace-otlp-http");
const { resourceFromAttributes } = require("@opentelemetry/resources");

const receiver = process.argv[2];
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "own-application" }),
  spanProcessors: [
    new SimpleSpanProcessor(new OTLPTraceExporter({ url: `${receiver}/javascript/v1/traces` })),
  ],
});
const tracer = provider.getTracer("own.chat", "1.0");
for (let number = 0; number < 3; number++) {
  const begin = 1780000000000 + number * 2000;
  const chat = tracer.startSpan("chat small-llama", {
    kind: SpanKind.CLIENT,
    startTime: begin,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "vllm",
      "gen_ai.request.model": "small-llama",
      "gen_ai.request.max_tokens": 64,
      "gen_ai.response.time_to_first_chunk": 0.25 + number / 10,
      "gen_ai.response.finish_reasons": ["length"],
      "gen_ai.usage.input_tokens": 100 + number,
      "gen_ai.usage.output_tokens": 64,
    },
  });
  if (number === 2) {
    chat.setAttribute("error.type", "TimeoutError");
    chat.setStatus({ code: SpanStatusCode.ERROR, message: "no answer in time" });
  }
  chat.end(begin + 1500);
}
provider.forceFlush().then(() => provider.shutdown());
