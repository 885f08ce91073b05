"""A service that is asked by 16 users at once.

Planted fault: the engine may run one sequence at a time (`max_num_seqs=1`), as a setting from a debugging
session would leave it, so all but one user wait. Nothing else is wrong.
"""

import argparse

from service import LARGER, Ask, run, start
from small_model import make_prompt


def main() -> None:
    """Answer 16 questions that come within a second."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--slots", type=int, default=1, help="sequences at a time; 16 of them mend the fault")
    slots = parser.parse_args().slots
    engine = start(LARGER, max_num_seqs=slots)
    run(engine, [Ask(make_prompt(20, seed=number), tokens=40, at=number / 16) for number in range(16)])


if __name__ == "__main__":
    main()
