"""An application whose model prepares itself in its first forward, as compilation or autotuning does.

Planted fault: the first request pays for seconds of preparation. All later requests are fine.
"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from small_model import make_model, make_prompt, make_tokenizer


class LazyProjection(torch.nn.Module):
    """Chooses the fastest of some layouts for its weight, by trying them all at first use."""

    def __init__(self, linear: torch.nn.Linear, trials: int) -> None:
        super().__init__()
        self.linear = linear
        self.trials = trials

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Project; the first time, tune first."""
        if self.trials:
            sample = torch.ones(512, self.linear.in_features)
            for _ in range(self.trials):
                self.linear(sample)
            self.trials = 0
        return self.linear(hidden)


def main() -> None:
    """Answer a few prompts with a model that tunes itself at first use."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=384, layers=4)
    for layer in model.model.layers:
        layer.mlp.down_proj = LazyProjection(layer.mlp.down_proj, trials=250)
    for number in range(8):
        inputs = tokenizer(make_prompt(60, seed=200 + number), return_tensors="pt")
        model.generate(**inputs, max_new_tokens=24, min_new_tokens=24, do_sample=False)
        print(f"answered {number + 1}")


if __name__ == "__main__":
    main()
