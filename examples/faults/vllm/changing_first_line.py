"""An assistant whose prompts hold the same instructions of about 1,000 tokens, behind a line with the time.

Planted fault: that first line is another one in each prompt. Prefix caching is on, but a prefix that differs
at its first tokens is shared by none, so the instructions are computed for each question. Nothing else is
wrong.
"""

import argparse
import datetime

from service import LARGER, Ask, run, start
from small_model import make_prompt


def main() -> None:
    """One user asks 16 questions."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--line-last", action="store_true", help="the time behind the instructions: mends it")
    last = parser.parse_args().line_last
    engine = start(LARGER, enable_prefix_caching=True)
    instructions = make_prompt(1000, seed=0)
    day = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    asks = []
    for number in range(16):
        line = f"It is {(day + datetime.timedelta(seconds=7919 * number)).isoformat()}, ask {number}."
        question = make_prompt(15, seed=1 + number)
        parts = [instructions, line, question] if last else [line, instructions, question]
        asks.append(Ask("\n".join(parts), tokens=8))
    run(engine, asks, users=1)


if __name__ == "__main__":
    main()
