"""An application that works through a list of prompts.

Planted fault: it gives the model its 64 prompts one by one, though all are there from the start and could
share every read of the weights. Nothing else is wrong.
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from small_model import make_model, make_prompt, make_tokenizer


def main() -> None:
    """Classify 64 prompts with a few tokens each."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--batch", type=int, default=1, help="prompts a call; more of them mend the fault")
    batch = parser.parse_args().batch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=768, layers=4, heads=12, kv_heads=4)
    prompts = [make_prompt(12, seed=400 + number) for number in range(64)]
    for first in range(0, len(prompts), batch):
        inputs = tokenizer(prompts[first : first + batch], return_tensors="pt", padding=True)
        model.generate(**inputs, max_new_tokens=12, min_new_tokens=12, do_sample=False)
    print("classified 64 prompts")


if __name__ == "__main__":
    main()
