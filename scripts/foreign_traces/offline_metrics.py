"""Generates with vLLM in this process, and writes what its outputs say of each request, a JSON line each.

Usage: offline_metrics.py MODEL FILE, with vLLM's Python.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from vllm import LLM, SamplingParams

QUESTIONS = {"How far is the moon?": 24, "Why do leaves change colour? " * 20: 40, "Bread.": 8}


def main(model: str, into: Path) -> None:
    """One batch of requests of different lengths."""
    engine = LLM(model, max_model_len=1024, enforce_eager=True, dtype="float32", disable_log_stats=False)
    asked = [SamplingParams(temperature=0, ignore_eos=True, max_tokens=n) for n in QUESTIONS.values()]
    with into.open("w") as file:
        for output in engine.generate(list(QUESTIONS), asked):
            said = {
                "request_id": output.request_id,
                "model": Path(model).name,
                "num_input_tokens": len(output.prompt_token_ids),
                "num_generated_tokens": len(output.outputs[0].token_ids),
                "num_cached_tokens": output.num_cached_tokens,
                "metrics": asdict(output.metrics),
            }
            file.write(json.dumps(said) + "\n")


if __name__ == "__main__":  # vLLM starts processes that import this file again
    main(sys.argv[1], Path(sys.argv[2]))
