"""The application that bench_run records: knows nothing of phasetrace, prints what it timed itself.

`python generating.py HIDDEN LAYERS ROWS TOKENS CALLS`: seeded calls of `generate()`, each timed by the
application; one that is not counted comes first.
"""

import json
import sys
import time
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
from small_model import make_model, make_tokenizer  # noqa: E402


def main() -> None:
    """Time each call, and say how long they took, in seconds of wall and of this process's CPU."""
    hidden, layers, rows, tokens, calls = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, hidden=hidden, layers=layers, heads=4, kv_heads=2)
    ids = torch.randint(10, 200, (rows, 32), generator=torch.Generator().manual_seed(1))
    walls, cpus = [], []
    for number in range(calls + 1):
        begin, cpu = time.monotonic(), time.process_time()
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            do_sample=False,
        )
        if number:
            walls.append(time.monotonic() - begin)
            cpus.append(time.process_time() - cpu)
    print(json.dumps({"wall": walls, "cpu": cpus}))


if __name__ == "__main__":
    main()
