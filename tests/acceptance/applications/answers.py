"""Two short requests, and the process they ran in."""

import os
import sys

import torch
from small_model import make_model, make_tokenizer

torch.set_num_threads(1)
model = make_model(make_tokenizer(), hidden=64, layers=2, heads=4, kv_heads=2)
ids = torch.randint(10, 300, (1, 20))
for _ in range(2):
    model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, min_new_tokens=12, do_sample=False
    )
sitecustomize = sys.modules.get("sitecustomize")
print(os.getpid(), getattr(sitecustomize, "WHOSE", None), sys.modules.get("phasetrace"))
if "--import-phasetrace" in sys.argv:
    import phasetrace

    print(phasetrace.__version__)
