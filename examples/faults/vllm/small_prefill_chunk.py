"""A service that reads documents of 1,000 tokens and answers in a few words.

Planted fault: a step may hold 16 tokens (`max_num_batched_tokens=16`, beside `max_num_seqs=16`), so each
document is read in more than 60 steps, and each step costs what it costs in any case. Nothing else is wrong.
"""

import argparse

from service import SMALL, Ask, run, start
from small_model import make_prompt


def main() -> None:
    """One user asks 16 questions, each about a document of its own."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--budget", type=int, default=16, help="tokens a step; 2048 of them mend the fault")
    budget = parser.parse_args().budget
    engine = start(SMALL, max_num_seqs=16, max_num_batched_tokens=budget)
    run(engine, [Ask(make_prompt(1000, seed=number), tokens=8) for number in range(16)], users=1)


if __name__ == "__main__":
    main()
