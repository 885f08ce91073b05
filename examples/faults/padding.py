"""An application that answers prompts in batches, each padded to its longest prompt.

Planted fault: every batch holds one very long prompt and many short ones, so most of what the model
computes is padding. Nothing else is wrong.
"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from small_model import make_model, make_prompt, make_tokenizer


def main() -> None:
    """Answer a few batches of prompts."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=512, layers=6)
    for batch in range(4):
        words = [320] + [10] * 11
        prompts = [make_prompt(count, seed=1000 * batch + row) for row, count in enumerate(words)]
        inputs = tokenizer(prompts, return_tensors="pt", padding=True)
        model.generate(**inputs, max_new_tokens=12, min_new_tokens=12, do_sample=False)
        print(f"answered batch {batch + 1}: {tuple(inputs['input_ids'].shape)}")


if __name__ == "__main__":
    main()
