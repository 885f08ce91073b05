"""A service that fills in forms: each answer is JSON, by a schema of the form.

Planted fault: every form's schema is large (80 fields, each one of 60 words) and another one each time, so
the engine compiles a grammar for each request before it may run. Nothing else is wrong.
"""

import argparse
import json
import random

from service import SMALL, Ask, run, start
from small_model import make_prompt
from vllm.sampling_params import StructuredOutputsParams

FIELDS, WORDS, FORMS = 80, 60, 16


def schema(seed: int) -> str:
    """A form with fields that are each one of some words."""
    random.seed(seed)
    words = [["".join(random.choices("abcdefghij", k=6)) for _ in range(WORDS)] for _ in range(FIELDS)]
    fields = {f"field_{seed}_{number}": {"enum": choice} for number, choice in enumerate(words)}
    return json.dumps({"type": "object", "properties": fields, "required": list(fields)})


def main() -> None:
    """Two users fill in 16 forms."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--one-form", action="store_true", help="the same schema for all, which mends it")
    one = parser.parse_args().one_form
    engine = start(SMALL, enable_prefix_caching=False)
    asks = []
    for number in range(FORMS):
        grammar = StructuredOutputsParams(json=schema(0 if one else number))
        sampling = {"structured_outputs": grammar, "ignore_eos": False, "temperature": 1.0, "seed": 0}
        asks.append(Ask(make_prompt(40, seed=number), tokens=40, sampling=sampling))
    run(engine, asks, users=2)


if __name__ == "__main__":
    main()
