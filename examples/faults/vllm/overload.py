"""A service that more questions come to than it can answer.

Planted fault: it first measures its capacity with as many questions at once as the engine has slots, then
gets twice as many a second as that, for twelve seconds. The slots are as many as the processor can fill:
more would win nothing. Nothing else is wrong.
"""

import argparse
import asyncio

from service import LARGER, Ask, serve, start
from small_model import make_prompt

SLOTS, SECONDS = 24, 12.0


async def work(load: float, knobs: dict[str, int]) -> None:
    """Measure, then offer `load` times the capacity."""
    engine = start(LARGER, **knobs)
    asks = [Ask(make_prompt(60, seed=number), tokens=30) for number in range(SLOTS)]
    await serve(engine, asks[:2], name="warm")
    capacity = SLOTS / await serve(engine, asks, name="full")
    rate = load * capacity
    print(f"capacity {capacity:.1f} a second, now {rate:.1f} a second")
    arrivals = [number / rate for number in range(int(rate * SECONDS))]
    await serve(engine, [Ask(make_prompt(60, seed=100 + n), 30, at) for n, at in enumerate(arrivals)])
    engine.shutdown()


def main() -> None:
    """Answer questions as they come."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--load", type=float, default=2.0, help="times the capacity; 0.6 is a load it bears")
    load = parser.parse_args().load
    asyncio.run(work(load, {"max_num_seqs": SLOTS, "enable_prefix_caching": False}))


if __name__ == "__main__":
    main()
