"""Every mode of `generate()` that users run, on tiny models made on the spot: prints what each gave, as JSON.

Run with and without recording it has to print the same. Not a test itself: a real engine runs it.
"""

import gc
import json
import sys
import threading
import warnings
import weakref

import torch
import transformers
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    StoppingCriteria,
    StoppingCriteriaList,
    T5Config,
    T5ForConditionalGeneration,
    TextIteratorStreamer,
    TextStreamer,
    pipeline,
)

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
VERSION = tuple(int(part) for part in transformers.__version__.split(".")[:2])
WORDS = 200
results = {}


def llama(layers=2, seed=0):
    torch.manual_seed(seed)
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=WORDS,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    names = ["<pad>", "<s>", "</s>", "<unk>"] + [f"w{i}" for i in range(4, WORDS)]
    made = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.decoder = decoders.Fuse()
    tok = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    tok.padding_side = "left"
    tok.chat_template = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}"
    return tok


def plain(value):
    """Something that JSON can hold and that is equal only where every token is."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict) and "sequences" in value:
        return value["sequences"].tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


ONLY = sys.argv[1:]


def mode(name):
    """Run a mode under its own seed; one that this version refuses says so, recorded or not."""

    def run(function):
        if ONLY and name not in ONLY:
            return
        torch.manual_seed(7)
        try:
            results[name] = plain(function())
        except Exception as error:
            results[name] = f"refused: {type(error).__name__}: {str(error)[:90]}"
        # the state of the generator afterwards: recording must draw nothing
        results[name + " rng"] = torch.rand(1).item()

    return run


model, draft, tok = llama(), llama(layers=1, seed=1), tokenizer()
ids = torch.randint(4, WORDS, (1, 24), generator=torch.Generator().manual_seed(3))
batch = torch.randint(4, WORDS, (3, 24), generator=torch.Generator().manual_seed(4))
mask = torch.ones_like(batch)
mask[1, :9] = 0
batch[1, :9] = 0
text = " ".join(f"w{i}" for i in range(10, 30))


@mode("greedy")
def _():
    return model.generate(ids, max_new_tokens=8, do_sample=False)


@mode("sample")
def _():
    return model.generate(
        ids, max_new_tokens=8, do_sample=True, temperature=0.9, top_k=20, repetition_penalty=1.2
    )


@mode("beams")
def _():
    return model.generate(ids, max_new_tokens=8, num_beams=3, do_sample=False)


@mode("beams early")
def _():
    return model.generate(
        ids,
        max_new_tokens=30,
        num_beams=3,
        do_sample=False,
        early_stopping=True,
        eos_token_id=list(range(0, 120)),
    )


@mode("beam_sample")
def _():
    return model.generate(ids, max_new_tokens=8, num_beams=3, do_sample=True, num_return_sequences=2)


@mode("assisted")
def _():
    return model.generate(ids, max_new_tokens=16, assistant_model=draft, do_sample=False)


@mode("assisted sample")
def _():
    return model.generate(ids, max_new_tokens=16, assistant_model=draft, do_sample=True)


@mode("assisted self")
def _():
    return model.generate(ids, max_new_tokens=16, assistant_model=llama(), do_sample=False)


@mode("prompt_lookup")
def _():
    return model.generate(
        torch.cat([ids, ids], 1), max_new_tokens=16, prompt_lookup_num_tokens=4, do_sample=False
    )


@mode("padded batch")
def _():
    return model.generate(batch, attention_mask=mask, max_new_tokens=8, do_sample=False)


@mode("num_return_sequences")
def _():
    return model.generate(ids, max_new_tokens=8, do_sample=True, num_return_sequences=3)


@mode("dict output")
def _():
    out = model.generate(
        ids, max_new_tokens=5, do_sample=False, return_dict_in_generate=True, output_scores=True
    )
    return [out.sequences, [s.sum().item() for s in out.scores]]


@mode("text streamer")
def _():
    import contextlib
    import io

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        model.generate(ids, max_new_tokens=6, do_sample=False, streamer=TextStreamer(tok))
    return said.getvalue()


@mode("iterator streamer")
def _():
    streamer = TextIteratorStreamer(tok)
    worker = threading.Thread(
        target=model.generate, args=(ids,), kwargs=dict(max_new_tokens=6, do_sample=False, streamer=streamer)
    )
    worker.start()
    pieces = list(streamer)
    worker.join()
    return pieces


class OwnStreamer:
    def __init__(self):
        self.seen = []

    def put(self, value):
        self.seen.append(value.tolist())

    def end(self):
        self.seen.append("end")


@mode("own streamer")
def _():
    streamer = OwnStreamer()
    model.generate(ids, max_new_tokens=6, do_sample=False, streamer=streamer)
    return streamer.seen


class Enough(StoppingCriteria):
    def __call__(self, input_ids, scores, **kwargs):
        return torch.full((input_ids.shape[0],), input_ids.shape[1] >= 29)


@mode("own criterion")
def _():
    return model.generate(
        ids, max_new_tokens=20, do_sample=False, stopping_criteria=StoppingCriteriaList([Enough()])
    )


@mode("pipeline")
def _():
    pipe = pipeline("text-generation", model=model, tokenizer=tok)
    return [
        pipe(text, max_new_tokens=5, do_sample=False),
        pipe([text, "w5 w6"], max_new_tokens=5, do_sample=False, batch_size=2),
    ]


@mode("chat pipeline")
def _():
    pipe = pipeline("text-generation", model=model, tokenizer=tok)
    return pipe([{"role": "w7", "content": text}], max_new_tokens=5, do_sample=False)


@mode("no cache")
def _():
    return model.generate(ids, max_new_tokens=5, do_sample=False, use_cache=False)


@mode("static cache")
def _():
    return model.generate(ids, max_new_tokens=6, do_sample=False, cache_implementation="static")


@mode("encoder-decoder")
def _():
    torch.manual_seed(5)
    t5 = T5ForConditionalGeneration(
        T5Config(
            vocab_size=WORDS,
            d_model=64,
            d_kv=16,
            d_ff=96,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
        )
    ).eval()
    return [
        t5.generate(batch, attention_mask=mask, max_new_tokens=6, do_sample=False),
        t5.generate(ids, max_new_tokens=6, num_beams=2, do_sample=False),
    ]


@mode("chunked prefill")
def _():
    return model.generate(ids, max_new_tokens=5, do_sample=False, prefill_chunk_size=10)


@mode("continued cache")
def _():
    first = model.generate(ids, max_new_tokens=5, do_sample=False, return_dict_in_generate=True)
    cache = first.cache if "cache" in first else first.past_key_values
    more = torch.cat([first.sequences, torch.full((1, 3), 11)], 1)
    again = {"cache": cache} if VERSION >= (5, 24) else {"past_key_values": cache}
    return model.generate(more, max_new_tokens=5, do_sample=False, **again)


@mode("embeddings")
def _():
    return model.generate(inputs_embeds=model.get_input_embeddings()(ids), max_new_tokens=5, do_sample=False)


@mode("contrastive")
def _():
    return model.generate(ids, max_new_tokens=5, penalty_alpha=0.6, top_k=3, do_sample=False)


@mode("custom generate")
def _():
    if VERSION < (4, 57):
        return "absent"

    def custom(model, input_ids, **kwargs):
        return torch.cat([input_ids, model(input_ids).logits[:, -1].argmax(-1, keepdim=True)], 1)

    return model.generate(ids, custom_generate=custom, max_new_tokens=3)


@mode("error")
def _():
    return model.generate(ids, max_new_tokens=5, no_such_argument=1)


class Failing(StoppingCriteria):
    def __call__(self, input_ids, scores, **kwargs):
        if input_ids.shape[1] >= 27:
            raise RuntimeError("the application's own")
        return torch.full((input_ids.shape[0],), False)


@mode("error in the middle")
def _():
    return model.generate(
        ids, max_new_tokens=20, do_sample=False, stopping_criteria=StoppingCriteriaList([Failing()])
    )


@mode("lets go")
def _():
    gone = []
    for streamer in (None, OwnStreamer()):
        prompt, marks = ids.clone(), torch.ones_like(ids)
        refs = [weakref.ref(prompt), weakref.ref(marks)]
        model.generate(prompt, attention_mask=marks, max_new_tokens=2, do_sample=False, streamer=streamer)
        del prompt, marks
        gone += [ref() is None for ref in refs]
    passing = llama()
    passing.generate(ids, max_new_tokens=2, do_sample=False)
    ref = weakref.ref(passing)
    del passing
    gc.collect()
    return [*gone, ref() is None]


@mode("threads")
def _():
    outs = [None] * 4

    def work(i):
        outs[i] = model.generate(batch[i % 3 : i % 3 + 1, 9:], max_new_tokens=8, do_sample=False).tolist()

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    return outs


@mode("generate_batch")
def _():
    if not hasattr(model, "generate_batch"):
        return "absent"
    paged = llama()
    if VERSION < (5, 0):
        from transformers.generation.continuous_batching import cache

        paged.set_attn_implementation("sdpa_paged")
        cache.get_device_and_memory_breakdown = lambda: (torch.device("cpu"), 1 << 30, 0, 0)  # it asks a GPU
    config = GenerationConfig(
        max_new_tokens=6,
        do_sample=False,
        eos_token_id=2,
        pad_token_id=0,
        num_blocks=32,
        block_size=16,
        max_batch_tokens=48,
        use_cache=False,
    )
    inputs = [row[9:].tolist() for row in batch] + [list(range(4, 4 + 60))]
    outs = paged.generate_batch(inputs=inputs, generation_config=config, progress_bar=False)
    return [outs[name].generated_tokens for name in sorted(outs)]


@mode("compile fullgraph")
def _():
    compiled = llama()
    if VERSION < (4, 57):  # no compilation of its own: as its users did it
        compiled.forward = torch.compile(compiled.forward, fullgraph=True, dynamic=False)
        return compiled.generate(ids, max_new_tokens=4, do_sample=False, cache_implementation="static")
    from transformers import CompileConfig

    config = CompileConfig(fullgraph=True, dynamic=False)
    config._compile_all_devices = True
    return compiled.generate(
        ids, max_new_tokens=4, do_sample=False, cache_implementation="static", compile_config=config
    )


print(json.dumps(results))
