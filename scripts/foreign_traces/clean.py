"""Takes out of protobuf traces, and of logs, where on a machine something lay. Usage: clean.py FILE..."""

import re
import sys
from pathlib import Path

from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

SITE = re.compile(r"/\S*/(?=(?:site-packages|multiprocessing)/)")

for name in sys.argv[1:]:
    path = Path(name)
    if path.suffix == ".log":
        path.write_text(SITE.sub("", path.read_text()))
        continue
    traces = TracesData.FromString(path.read_bytes())
    for resource in traces.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                for attribute in span.attributes:
                    if attribute.value.HasField("string_value"):
                        attribute.value.string_value = SITE.sub("", attribute.value.string_value)
    path.write_bytes(traces.SerializeToString())
