"""An assistant whose every prompt begins with the same instructions of about 1,000 tokens.

Planted fault: prefix caching is off, so the instructions are computed for each question. Nothing else is
wrong.
"""

import argparse

from service import LARGER, Ask, run, start
from small_model import make_prompt


def main() -> None:
    """One user asks 16 questions."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--caching", action="store_true", help="cache prefixes, which mends the fault")
    caching = parser.parse_args().caching
    engine = start(LARGER, enable_prefix_caching=caching)
    instructions = make_prompt(1000, seed=0)
    questions = [make_prompt(15, seed=1 + number) for number in range(16)]
    prompts = [f"{instructions}\n{question}" for question in questions]
    run(engine, [Ask(prompt, tokens=8) for prompt in prompts], users=1)


if __name__ == "__main__":
    main()
