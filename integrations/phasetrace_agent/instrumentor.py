"""The entry point `opentelemetry_instrumentor`: its sitecustomize wins over ours, so it starts us by this."""

from __future__ import annotations

import os

from . import bootstrap


class Instrumentor:
    """What `opentelemetry-instrument` expects of an instrumentor; records to the spool alone."""

    def instrument(self, **kwargs: object) -> None:
        """Start the agent if there is a spool; where it runs already this does nothing."""
        bootstrap.start(covers_children="PHASETRACE_RUN" in os.environ)

    def uninstrument(self, **kwargs: object) -> None:
        """Stop recording."""
        bootstrap.stop()
