"""A service that writes texts which never repeat themselves.

Planted fault: speculation drafts twelve tokens from n-grams that stood in the text before. Tokens here are
drawn at random, so drafts are nearly always wrong, and a step computes up to thirteen positions a sequence
for one token. Nothing else is wrong.
"""

import argparse

from service import LARGER, Ask, run, start
from small_model import make_prompt

NGRAM = {"method": "ngram", "num_speculative_tokens": 12, "prompt_lookup_max": 3, "prompt_lookup_min": 1}


def main() -> None:
    """Eight users ask for 16 texts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--plain", action="store_true", help="without speculation, which mends the fault")
    plain = parser.parse_args().plain
    engine = start(LARGER, speculative_config=None if plain else NGRAM)
    sampling = {"temperature": 1.0}
    asks = [Ask(make_prompt(300, seed=number), tokens=60, sampling=sampling) for number in range(16)]
    run(engine, asks, users=8)


if __name__ == "__main__":
    main()
