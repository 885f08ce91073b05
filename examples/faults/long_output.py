"""An application that lets the model write on and on.

Planted fault: each answer is 1,200 tokens long although the application needs about 400 of them: what is past
`--needed` it throws away. Nothing else is wrong.
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from small_model import make_model, make_prompt, make_tokenizer


def main() -> None:
    """Answer two prompts, and keep the first part of each answer."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--tokens", type=int, default=1200, help="tokens that the model writes for an answer")
    parser.add_argument("--needed", type=int, default=400, help="tokens of an answer that are used")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=384, layers=3)
    for number in range(2):
        inputs = tokenizer(make_prompt(40, seed=300 + number), return_tensors="pt")
        output = model.generate(
            **inputs, max_new_tokens=arguments.tokens, min_new_tokens=arguments.tokens, do_sample=False
        )
        answer = output[0, inputs["input_ids"].shape[1] :][: arguments.needed]
        print(f"answered {number + 1}: kept {len(answer)} tokens")


if __name__ == "__main__":
    main()
