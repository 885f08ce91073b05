"""An application that switches the KV cache off, as some fine-tuning scripts leave it behind.

Planted fault: `use_cache=False`, so every new token computes the whole prompt again. Nothing else is wrong.
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from small_model import make_model, make_prompt, make_tokenizer


def main() -> None:
    """Answer a few prompts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--cache", action="store_true", help="leave the cache on, which mends the fault")
    cache = parser.parse_args().cache

    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=512, layers=4)
    model.config.use_cache = cache
    model.generation_config.use_cache = cache
    for number in range(4):
        inputs = tokenizer(make_prompt(120, seed=100 + number), return_tensors="pt")
        model.generate(**inputs, max_new_tokens=32, min_new_tokens=32, do_sample=False)
        print(f"answered {number + 1}")


if __name__ == "__main__":
    main()
