"""Names of spans, and who made them."""

from __future__ import annotations

from phasetrace.semconv.described import Described


class Scope(Described):
    """Instrumentation scopes: who made a span."""

    ALL = ("phasetrace", "", "requests, and what is needed to make all other spans again (files only)")
    PHASES = ("phasetrace.phases", "", "spans of phases, which in a file can be made again from its steps")
    TOKENS = ("phasetrace.tokens", "", "spans of tokens, which in a file can be made again from its steps")


class SpanName(Described):
    """What spans are called. The span of a request itself is named `{operation} {model}`."""

    FRONTEND = (
        "frontend",
        "",
        "from the request's arrival until the engine has it: the application, tokenising",
    )
    QUEUE = ("queue", "", "the engine has the request and has not begun it")
    PREFILL = ("prefill", "", "from the first step until the first token")
    PREFILL_CHUNK = ("prefill chunk", "", "one step that read a part of the prompt")
    DECODE = ("decode", "", "from the first token until the last one")
    DECODE_CHUNK = (
        "decode chunk",
        "",
        "a stretch of a decode whose token times do not fit into one attribute",
    )
    TOKEN = ("token", "", "the wait for one token, or for a run of unremarkable ones")
    PREEMPTED = ("preempted", "", "the engine had put the request aside for others")
    DELIVERY = ("delivery", "", "from the last token until the user had it")
    STEPS = ("phasetrace.steps", "", "up to 1,024 steps of an engine, column by column (files only)")
    PAUSES = ("phasetrace.pauses", "", "stops of a whole process, column by column (files only)")
    SAMPLES = ("phasetrace.samples", "", "what a process or a device used, column by column (files only)")
    STAGE = ("phasetrace.stage", "", "a part of an engine's start: loading a model, warming up")
    PROCESS = (
        "phasetrace.process",
        "",
        "what a recorded process ran, and what recording it cost (files only)",
    )
    MODEL = ("phasetrace.model", "", "a model's shape (files only)")
    RUN = ("phasetrace.run", "", "the recording as a whole (files only)")

    @property
    def scope(self) -> Scope:
        """The scope of its spans."""
        if self is SpanName.TOKEN:
            return Scope.TOKENS
        return Scope.ALL if self.startswith("phasetrace.") else Scope.PHASES


# What is shown to people and worked out again when a file is read.
DERIVED_SPANS = frozenset(name for name in SpanName if name.scope is not Scope.ALL)
