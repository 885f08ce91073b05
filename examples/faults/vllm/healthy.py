"""Three services that do well what they are for; no fault is planted.

`chat` streams short answers to two users, `forms` classifies documents that begin with the same instructions,
with prefix caching on, and `batch` works through a list with as many at a time as there are prompts.
"""

import argparse

from service import LARGER, Ask, run, start
from small_model import make_prompt


def chat() -> list[Ask]:
    """Two users."""
    return [Ask(make_prompt(30, seed=n), tokens=40) for n in range(16)]


def forms() -> list[Ask]:
    """Documents with the same instructions in front."""
    instructions = make_prompt(600, seed=0)
    return [Ask(f"{instructions}\n{make_prompt(20, seed=1 + n)}", tokens=6) for n in range(16)]


def batch() -> list[Ask]:
    """All that there is, at once."""
    return [Ask(make_prompt(30, seed=n), tokens=60, stream=False) for n in range(32)]


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("service", choices=["chat", "forms", "batch"])
    service = parser.parse_args().service
    asks = {"chat": chat, "forms": forms, "batch": batch}[service]()
    run(start(LARGER, max_num_seqs=32), asks, users=32 if service == "batch" else 2)


if __name__ == "__main__":
    main()
