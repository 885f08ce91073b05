"""An application that drives `LLMEngine` through all that may cost a token, and counts the tokens itself.

`python tokens_application.py MODEL RESULT [--asynchronous | --speculate]`. Nothing here knows phasetrace.
What was sampled is counted where the model runner hands it over, what was returned where the engine does.
"""

import argparse
import json
import os
from collections import Counter

from offline_application import schedule_ahead

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "size": {"enum": ["small", "large"]}},
    "required": ["name", "size"],
}
SHARED = "The lighthouse keeper wrote in his log that "


class Count:
    """What the model runner sampled by request, what was speculated, and who was preempted."""

    def __init__(self):
        from vllm.v1.core.sched.scheduler import Scheduler

        self.sampled = Counter()
        self.proposed = self.accepted = self.preempted = 0
        update, observe = Scheduler.update_from_output, Scheduler.make_spec_decoding_stats
        preempt = Scheduler._preempt_request

        def update_from_output(scheduler, scheduled, ran):
            for name, row in ran.req_id_to_index.items():
                self.sampled[name] += len(ran.sampled_token_ids[row]) if ran.sampled_token_ids else 0
            return update(scheduler, scheduled, ran)

        def make_spec_decoding_stats(scheduler, stats, **counts):
            self.proposed += counts["num_draft_tokens"]
            self.accepted += counts["num_accepted_tokens"]
            return observe(scheduler, stats, **counts)

        def _preempt_request(scheduler, *args, **kwargs):
            self.preempted += 1
            return preempt(scheduler, *args, **kwargs)

        Scheduler.update_from_output = update_from_output
        Scheduler.make_spec_decoding_stats = make_spec_decoding_stats
        Scheduler._preempt_request = _preempt_request


def requests():
    """Prompt and settings by name; prompts longer than a step's budget, and with a beginning in common."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    def asked(tokens, **more):
        return SamplingParams(**{"max_tokens": tokens, "temperature": 0, "ignore_eos": True, **more})

    for row in range(6):
        yield f"plain-{row}", "Rivers rise " * (2 + 11 * row), asked(20 + 13 * row)
    for row in range(3):
        yield f"shared-{row}", SHARED * 8 + "x" * row, asked(15)
    for row in range(3):
        words = {"stop": ["e"], "temperature": 1, "seed": row}
        yield f"stopped-{row}", "It stops " * 5, asked(90, **words)
    yield "several", "One of four " * 4, asked(30, n=4, temperature=1, seed=7)
    grammar = StructuredOutputsParams(json=SCHEMA)
    yield "grammar", "As JSON: ", asked(60, structured_outputs=grammar, ignore_eos=False)
    yield "left", "Nobody waits for this " * 3, asked(150)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("result")
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--speculate", action="store_true")
    arguments = parser.parse_args()
    if arguments.asynchronous:
        schedule_ahead()
    from vllm import EngineArgs, LLMEngine

    speculation = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}
    engine = LLMEngine.from_engine_args(
        EngineArgs(
            arguments.model,
            enforce_eager=True,
            max_model_len=512,
            dtype="float32",
            num_gpu_blocks_override=9,
            max_num_batched_tokens=128,
            max_num_seqs=8,
            enable_prefix_caching=True,
            disable_log_stats=False,
            speculative_config=speculation if arguments.speculate else None,
        )
    )
    count = Count()
    for name, prompt, asked in requests():
        engine.add_request(name, prompt, asked)
    told = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            known = told.setdefault(output.request_id, {"returned": {}, "reasons": {}})
            known["cached"] = output.num_cached_tokens
            for row in output.outputs:
                known["returned"][row.index] = len(row.token_ids)
                known["reasons"][row.index] = row.finish_reason
            if output.request_id == "left" and known["returned"][0] >= 5:
                engine.abort_request(["left"])
    sampled = Counter()
    for name, tokens in count.sampled.items():  # `2_several-4f1c` is the third sequence of `several`
        sampled[name.split("_")[-1].rsplit("-", 1)[0]] += tokens
    totals = {"proposed": count.proposed, "accepted": count.accepted, "preempted": count.preempted}
    plugins = os.environ.get("VLLM_PLUGINS")
    with open(arguments.result, "w") as file:
        json.dump({"requests": told, "sampled": sampled, "plugins": plugins, **totals}, file)


if __name__ == "__main__":
    main()
