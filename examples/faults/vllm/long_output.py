"""A service that writes reports of 1,000 tokens.

Planted fault: it does not stream. Its users wait for the last token before they see the first one. Nothing
else is wrong.
"""

import argparse

from service import SMALL, Ask, run, start
from small_model import make_prompt


def main() -> None:
    """One user asks for six reports."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--stream", action="store_true", help="hand out each token, which mends the fault")
    stream = parser.parse_args().stream
    engine = start(SMALL)
    run(engine, [Ask(make_prompt(30, seed=n), tokens=1000, stream=stream) for n in range(6)], users=1)


if __name__ == "__main__":
    main()
