"""An application that runs `LLM()` in this process and writes what the engine's own statistics say.

`python offline_application.py MODEL RESULT [--asynchronous]`. Nothing here knows phasetrace.
"""

import argparse
import json


def schedule_ahead():
    """Turn on asynchronous scheduling, which vLLM switches off on CPUs."""
    from vllm.platforms.cpu import CpuPlatform

    check = CpuPlatform.check_and_update_config.__func__

    def check_and_update_config(cls, config):
        check(cls, config)
        config.scheduler_config.async_scheduling = True

    CpuPlatform.check_and_update_config = classmethod(check_and_update_config)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("result")
    parser.add_argument("--asynchronous", action="store_true")
    arguments = parser.parse_args()
    if arguments.asynchronous:
        schedule_ahead()
    from opentelemetry.sdk.trace import TracerProvider
    from vllm import LLM, SamplingParams

    llm = LLM(
        arguments.model,
        enforce_eager=True,
        max_model_len=512,
        dtype="float32",
        disable_log_stats=False,
    )
    prompts = ["The river rises " * (3, 20, 60)[row % 3] for row in range(12)]
    lengths = [5 + 37 * row % 120 for row in range(12)]
    asked = [SamplingParams(max_tokens=n, temperature=0, ignore_eos=True) for n in lengths]
    with TracerProvider().get_tracer("app").start_as_current_span("work") as span:
        answers = llm.generate(prompts, asked, use_tqdm=False)
    told = [
        {
            "id": answer.request_id,
            "parent": f"{span.get_span_context().span_id:016x}",
            "tokens": len(answer.outputs[0].token_ids),
            "cached": answer.num_cached_tokens,
            "prefill": answer.metrics.first_token_ts - answer.metrics.scheduled_ts,
            "decode": answer.metrics.last_token_ts - answer.metrics.first_token_ts,
        }
        for answer in answers
    ]
    with open(arguments.result, "w") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main()
