"""The application that bench_vllm_run records: knows nothing of phasetrace, times its rounds itself.

`python vllm_rounds.py MODEL`: for each line on its input one round of the same offline requests, and a line
with the output tokens a second of it; ends with its input.
"""

import sys
import time

from vllm import LLM, SamplingParams


def main() -> None:
    """One round that is not counted, then one for each line."""
    llm = LLM(
        sys.argv[1],
        enforce_eager=True,
        max_model_len=512,
        max_num_seqs=32,
        dtype="float32",
        enable_prefix_caching=False,
    )
    prompts = [f"{row} " + "The river rises " * (1 + row % 20) for row in range(64)]
    asked = [
        SamplingParams(max_tokens=16 + 7 * row % 100, temperature=0, ignore_eos=True) for row in range(64)
    ]
    tokens = sum(params.max_tokens or 0 for params in asked)
    llm.generate(prompts, asked, use_tqdm=False)
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = time.monotonic()
        llm.generate(prompts, asked, use_tqdm=False)
        print(tokens / (time.monotonic() - begin), flush=True)


if __name__ == "__main__":
    main()
