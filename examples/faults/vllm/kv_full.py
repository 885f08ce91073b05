"""A service that answers 16 users with documents of about 500 tokens.

Planted fault: the KV cache has 40 blocks of 32 tokens, room for two requests, while the engine has slots for
all 16: the others wait for memory. Nothing else is wrong.
"""

import argparse

from service import LARGER, Ask, run, start
from small_model import make_prompt


def main() -> None:
    """Answer 16 questions, each about a document of its own, that come within two seconds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--blocks", type=int, default=40, help="of KV cache; 400 of them mend the fault")
    blocks = parser.parse_args().blocks
    engine = start(LARGER, max_num_seqs=16, block_size=32, max_model_len=1024, num_gpu_blocks_override=blocks)
    prompts = [make_prompt(500, seed=number) for number in range(16)]
    run(engine, [Ask(prompt, tokens=80, at=number / 8) for number, prompt in enumerate(prompts)])


if __name__ == "__main__":
    main()
