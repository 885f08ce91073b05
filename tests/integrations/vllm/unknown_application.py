"""An application with a vLLM whose version nobody knows yet. `python unknown_application.py MODEL RESULT`."""

import json
import sys

import vllm._version

vllm._version.__version__ = vllm._version.version = vllm.__version__ = "0.99.0"


def main():
    from vllm import LLM, SamplingParams
    from vllm.v1.core.sched.scheduler import Scheduler

    model, result = sys.argv[1:]
    llm = LLM(model, enforce_eager=True, max_model_len=256, dtype="float32")
    (answer,) = llm.generate("One prompt", SamplingParams(max_tokens=5, ignore_eos=True), use_tqdm=False)
    told = {"tokens": len(answer.outputs[0].token_ids), "hooked": hasattr(Scheduler.schedule, "__wrapped__")}
    with open(result, "w") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main()
