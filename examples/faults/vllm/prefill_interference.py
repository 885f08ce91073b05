"""A service for chats, which somebody also sends a long document every second.

Planted fault: each document is about 4,000 tokens long and read by the engine that the chats run on. While
it is read no chat gets a token. Nothing else is wrong.
"""

import argparse
import asyncio

from service import SMALL, Ask, serve, start
from small_model import make_prompt


async def work(documents: int, budget: int) -> None:
    """Let six users chat, and send the documents meanwhile."""
    engine = start(SMALL, max_num_batched_tokens=budget, enable_prefix_caching=False)
    chats = [Ask(make_prompt(20, seed=number), tokens=200) for number in range(30)]
    long = [Ask(make_prompt(3700, seed=100 + n), tokens=2, at=0.5 + n) for n in range(documents)]
    sent = [serve(engine, chats, users=6, name="chat")]
    sent += [serve(engine, long, name="document")] if long else []
    await asyncio.gather(*sent)
    engine.shutdown()


def main() -> None:
    """Answer chats, and sum up each document in two tokens."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--documents", type=int, default=12, help="0: another engine reads them: mends it")
    parser.add_argument("--budget", type=int, default=4096, help="tokens a step")
    arguments = parser.parse_args()
    asyncio.run(work(arguments.documents, arguments.budget))


if __name__ == "__main__":
    main()
