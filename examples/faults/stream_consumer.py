"""An application that shows tokens as they come.

Planted fault: its streamer takes longer to show a token than the model to make it, and the model waits.
Nothing else is wrong.
"""

import sys
import time
from pathlib import Path

import torch
from transformers.generation.streamers import BaseStreamer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from small_model import make_model, make_prompt, make_tokenizer


class SlowScreen(BaseStreamer):
    """Stands for a consumer that writes each token over a slow connection before it takes the next."""

    def __init__(self) -> None:
        self.shown = 0

    def put(self, value: torch.Tensor) -> None:
        """Show what came."""
        time.sleep(0.04)
        self.shown += value.numel()

    def end(self) -> None:
        """Finish the line."""
        print(f"showed {self.shown} tokens")


def main() -> None:
    """Stream a few answers."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=384, layers=4)
    for number in range(4):
        inputs = tokenizer(make_prompt(40, seed=500 + number), return_tensors="pt")
        model.generate(**inputs, max_new_tokens=48, min_new_tokens=48, do_sample=False, streamer=SlowScreen())


if __name__ == "__main__":
    main()
