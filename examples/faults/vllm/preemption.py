"""A service that writes answers of 300 tokens to short questions of 16 users.

Planted fault: the KV cache has 50 blocks of 32 tokens. All questions fit in, but not their answers: as they
grow the engine evicts requests again and again, and computes them anew. Nothing else is wrong.
"""

import argparse

from service import LARGER, Ask, run, start
from small_model import make_prompt


def main() -> None:
    """Answer 16 questions that come within a second."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--blocks", type=int, default=50, help="of KV cache; 200 of them mend the fault")
    blocks = parser.parse_args().blocks
    engine = start(
        LARGER,
        max_num_seqs=16,
        block_size=32,
        max_model_len=1024,
        num_gpu_blocks_override=blocks,
        enable_prefix_caching=False,
    )
    run(engine, [Ask(make_prompt(20, seed=number), tokens=300, at=number / 16) for number in range(16)])


if __name__ == "__main__":
    main()
