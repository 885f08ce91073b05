"""Applications that the tests record. They run in the engine's environment and know nothing of phasetrace."""

CALLS = 64  # of spans.py
TOKENS = 20
