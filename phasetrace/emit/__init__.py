"""Recording -> spans written somewhere: a trace file, an OTLP endpoint."""
