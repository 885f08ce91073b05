"""What a user's program does with a model of its own: loads it from a folder, streams, chats, samples, fails.

usage: tour.py FOLDER SECRET. SECRET is planted wherever a user's secret may be; it must come out nowhere.
FOLDER/toured tells that all is done but the end, which waits for a line on stdin. What this program writes to
stderr goes to FOLDER/stderr, since the recording writes to the same terminal.
Nothing of phasetrace and OpenTelemetry is installed where this runs, and it makes sure of it.
"""

import importlib.util
import os
import sys
from pathlib import Path

import torch
from small_model import make_model, make_prompt, make_tokenizer
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    StoppingCriteria,
    StoppingCriteriaList,
    TextStreamer,
    pipeline,
)

assert importlib.util.find_spec("phasetrace") is None
assert importlib.util.find_spec("opentelemetry") is None
folder, secret = Path(sys.argv[1]), sys.argv[2]
os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT), 2)
os.environ["HF_TOKEN_OF_THE_APPLICATION"] = f"{secret}-in-environment"
torch.set_num_threads(1)
torch.manual_seed(0)

home = folder / f"{secret}-in-path" / "tiny"  # the name of a model may be told, where it lies may not
tokenizer = make_tokenizer()
make_model(tokenizer, hidden=384, layers=6).save_pretrained(home)
tokenizer.save_pretrained(home)
model = AutoModelForCausalLM.from_pretrained(home).eval()
model.generation_config.pad_token_id = tokenizer.pad_token_id
model.generation_config.eos_token_id = None
tokenizer = AutoTokenizer.from_pretrained(home)


class Fails(StoppingCriteria):
    """Raises an exception whose text and type hold what is nobody's business."""

    def __call__(self, input_ids, scores, **kwargs):
        raise RuntimeError(f"{secret}-in-exception")


Secretive = type("Streamer", (TextStreamer,), {"__doc__": f"{secret}-in-streamer"})
for number in range(3):
    inputs = tokenizer(f"{secret}-in-prompt {make_prompt(60, seed=number)}", return_tensors="pt")
    model.generate(**inputs, max_new_tokens=48, do_sample=False, streamer=Secretive(tokenizer))
inputs = tokenizer([f"{secret}-in-batch", make_prompt(30, seed=9)], return_tensors="pt", padding=True)
model.generate(**inputs, max_new_tokens=32, do_sample=True, num_return_sequences=2)
model.generate(**inputs, max_new_tokens=16, num_beams=3)
model.generate(**inputs, max_new_tokens=8, stop_strings=[f"{secret}-in-knob"], tokenizer=tokenizer)
model.generate(**inputs, max_new_tokens=8, watermarking_config=None, bad_words_ids=[[5, 6]])
try:
    model.generate(**inputs, max_new_tokens=8, stopping_criteria=StoppingCriteriaList([Fails()]))
except RuntimeError as error:
    assert secret in str(error)
chat = pipeline("text-generation", model=model, tokenizer=tokenizer)
chat([{"role": "user", "content": f"{secret}-in-chat"}], max_new_tokens=24)
for number in range(2):
    ids = torch.randint(10, 300, (1, 40))
    model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=2000 if number else 16)
(folder / "toured").touch()
sys.stdin.readline()
raise ValueError(f"{secret}-at-the-end")
