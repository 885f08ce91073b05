"""The entry point `opentelemetry_instrumentor`: its sitecustomize wins over ours, so it starts us by this instead."""

import os

from . import bootstrap


class Instrumentor:
    """What `opentelemetry-instrument` expects of an instrumentor; it records to phasetrace's spool, not to OpenTelemetry."""

    def instrument(self, **kwargs):  # type: ignore[no-untyped-def]
        """Start the agent if there is a spool; where it runs already this does nothing."""
        bootstrap.start(covers_children="PHASETRACE_RUN" in os.environ)

    def uninstrument(self, **kwargs):  # type: ignore[no-untyped-def]
        """Stop recording."""
        bootstrap.stop()
