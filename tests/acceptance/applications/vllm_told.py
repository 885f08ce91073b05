"""A vLLM plugin that writes what the engine's own statistics say of each request, a line of JSON each.

Offered to vLLM by an entry point of the group `vllm.stat_logger_plugins`; TOLD names the file.
"""

import json
import os

from vllm.v1.metrics.loggers import StatLoggerBase


class Told(StatLoggerBase):
    """Knows nothing of phasetrace."""

    def __init__(self, vllm_config, engine_index=0):
        self.file = open(os.environ["TOLD"], "a", buffering=1)

    def record(self, scheduler_stats, iteration_stats, mm_cache_stats=None, engine_idx=0):
        """Called with the outputs of each step."""
        for request in iteration_stats.finished_requests if iteration_stats else ():
            told = {
                "id": request.request_id,
                "queue": request.queued_time,
                "prefill": request.prefill_time,
                "decode": request.decode_time,
                "tokens": request.num_generation_tokens,
            }
            self.file.write(json.dumps(told) + "\n")

    def log_engine_initialized(self): ...
