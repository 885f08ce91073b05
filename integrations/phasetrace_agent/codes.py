"""What the numbers in records stand for: kinds, scopes, points, reasons, parts."""

from __future__ import annotations

# Kinds of records
FACTS = 1  # scope, key, JSON: of the process, an engine, a model
CLOCK = 2  # a pair of monotonic and wall clock
ARRIVED = 3  # a request, JSON
MARK = 4  # a request passed a point
STEP = 5  # one engine step with its batch
DETAIL = 6  # a request, JSON merged into what is known of it
PREFIX = 7  # hashed chunks of one sequence's prompt
FINISHED = 8  # a request, JSON
PAUSE = 9  # the whole process stood still
DEVICE = 10  # device time of a step, known later than the step
TROUBLE = 11  # a hook failed and disabled itself, records were lost, a child runs without us: JSON
BATCH_STATE = 12  # queues and KV blocks as a step was scheduled, where they changed
STEP_TOKENS = 13  # tokens of a step that were speculated or discarded, where there are any
STAGE = 14  # a part of an engine's start, JSON
EXECUTION = 15  # a worker executed a step
ENDED = 16  # a request, as most of an engine's end: FINISHED in a few numbers

# Scopes of FACTS
PROCESS, ENGINE, MODEL = 1, 2, 3

# Points of MARK
RECEIVED = 1  # by the engine
SCHEDULED = 2  # first time in a step
PREEMPTED = 3
RESUMED = 4
HANDED_OVER = 5  # an output reached the user
QUEUED = 6  # the scheduler has it; until then it waited for the step that was running
GRAMMAR_READY = 7  # its grammar is compiled

# Why the head of the queue was not scheduled, by code
HEAD_REASONS = (
    "none",  # nobody waits
    "slots",
    "kv",
    "budget",
    "grammar",
    "remote-kv",
    "lora",
    "paused",
    "other",
)
HEAD_REASON_CODE = {name: code for code, name in enumerate(HEAD_REASONS)}

# How a request ended, by code
ENDINGS = ("other", "stop", "length", "abort", "error")
ENDING_CODE = {name: code for code, name in enumerate(ENDINGS)}

# Why a token that was sampled for a request was given to nobody
PAST_END = "past-end"  # by a step scheduled ahead, or speculated beyond a stop
STOP_STRING = "stop-string"  # the frontend found it in the text, and the core had gone on
ABORTED, PREEMPTED_MEANWHILE, UNDELIVERED = "aborted", "preempted", "undelivered"

# Parts of a step, by code; the names are those of phasetrace.model.Part
PARTS = (
    "other",
    "setup",
    "encode",
    "prepare",
    "forward",
    "update",
    "logits",
    "sampling",
    "criteria",
    "stream",
    "draft",
    "schedule",
    "output",
)
PART_CODE = {name: code for code, name in enumerate(PARTS)}
