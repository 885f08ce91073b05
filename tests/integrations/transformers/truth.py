"""An application that times itself: around `model.forward`, and at the end of its own stopping criterion.

Prints the times of every request as JSON. Not a test itself: a real engine runs it, recorded.
"""

import functools
import json
import sys
import time

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, StoppingCriteria, StoppingCriteriaList

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
torch.manual_seed(0)
now = time.monotonic_ns
model = LlamaForCausalLM(
    LlamaConfig(
        hidden_size=512,
        intermediate_size=1408,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=4000,
        max_position_embeddings=2048,
        eos_token_id=None,
        pad_token_id=0,
    )
).eval()
forwards, tokens, requests = [], [], []
plain_forward = model.forward


@functools.wraps(plain_forward)
def timed_forward(*args, **kwargs):
    begin = now()
    outputs = plain_forward(*args, **kwargs)
    forwards.append((begin, now()))
    return outputs


class Stamp(StoppingCriteria):
    """Never stops; notes when it was asked."""

    def __call__(self, input_ids, scores, **kwargs):
        go_on = torch.zeros(input_ids.shape[0], dtype=torch.bool)
        tokens.append(now())
        return go_on


model.forward = timed_forward
repeats = int(sys.argv[1])
for prompt in (16, 64, 256):
    for output in (2, 6, 16):
        for batch in (1, 4):
            for _ in range(repeats):
                ids = torch.randint(1, 4000, (batch, prompt))
                forwards.clear()
                tokens.clear()
                begin = now()
                model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=output,
                    do_sample=False,
                    stopping_criteria=StoppingCriteriaList([Stamp()]),
                )
                end = now()
                requests.append(
                    {
                        "prompt": prompt,
                        "output": output,
                        "batch": batch,
                        "begin": begin,
                        "end": end,
                        "forwards": list(forwards),
                        "tokens": list(tokens),
                    }
                )
print(json.dumps(requests))
