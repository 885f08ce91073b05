"""An application that answers prompts in batches, each padded to its longest prompt.

Planted fault: every batch holds one very long prompt and many short ones, so most of what the model
computes is padding. Nothing else is wrong.
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from small_model import make_model, make_prompt, make_tokenizer


def main() -> None:
    """Answer 48 prompts, 12 at a time."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--sort", action="store_true", help="prompts of like length together: mends the fault"
    )
    sort = parser.parse_args().sort

    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=512, layers=6)
    words = ([320] + [10] * 11) * 4
    prompts = [make_prompt(count, seed=number) for number, count in enumerate(words)]
    order = sorted(range(48), key=lambda number: len(prompts[number])) if sort else range(48)
    for first in range(0, 48, 12):
        inputs = tokenizer(
            [prompts[number] for number in order[first : first + 12]], return_tensors="pt", padding=True
        )
        model.generate(**inputs, max_new_tokens=12, min_new_tokens=12, do_sample=False)
        print(f"answered 12: {tuple(inputs['input_ids'].shape)}")


if __name__ == "__main__":
    main()
