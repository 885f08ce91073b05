"""What a call of `generate()` tells about itself, by its arguments, its configuration and its result. Pure.

Nothing here knows torch: tensors are asked for `shape` and `device`, and for their content only where that
is the host's memory already, since asking a device waits for it. What is not known is left out, never
guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phasetrace_agent import signals

# Numbers and switches that bear on time; of a configuration nothing else is recorded
NUMBERS = (
    "max_new_tokens", "max_length", "min_new_tokens", "num_beams", "num_beam_groups",
    "num_return_sequences", "do_sample", "temperature", "top_k", "top_p", "min_p", "typical_p",
    "repetition_penalty", "no_repeat_ngram_size", "length_penalty", "early_stopping", "guidance_scale",
    "penalty_alpha", "use_cache", "prefill_chunk_size", "prompt_lookup_num_tokens",
    "num_assistant_tokens", "assistant_confidence_threshold", "assistant_early_exit", "use_mtp",
    "low_memory", "disable_compile", "output_scores", "output_logits", "output_attentions",
    "output_hidden_states",
)  # fmt: skip
# What 4.x fills in where nobody asked for it: not worth a word
NEUTRAL = {
    "num_beams": 1, "num_beam_groups": 1, "num_return_sequences": 1, "temperature": 1.0, "top_k": 50,
    "top_p": 1.0, "typical_p": 1.0, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0,
    "length_penalty": 1.0, "early_stopping": False, "min_new_tokens": 0, "output_scores": False,
    "output_logits": False, "output_attentions": False, "output_hidden_states": False, "low_memory": False,
    "num_assistant_tokens": 20, "assistant_confidence_threshold": 0.4,
}  # fmt: skip
CACHES = (
    "static", "offloaded_static", "sliding_window", "hybrid", "offloaded_hybrid", "hybrid_chunked",
    "mamba", "quantized", "offloaded", "dynamic", "dynamic_full", "paged",
)  # fmt: skip
# The arguments of generate() that all versions take in this order
POSITIONS = (
    "inputs", "generation_config", "logits_processor", "stopping_criteria", "prefix_allowed_tokens_fn",
    "synced_gpus", "assistant_model", "streamer",
)  # fmt: skip

READ_AT_MOST = 1 << 22  # elements of a tensor; what is larger stays unknown

Rows = list[list[int]]


class Call:
    """The arguments of one `generate()` call, given by position, by name, or in a configuration."""

    def __init__(self, model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.arguments: Mapping[str, Any] = {**dict(zip(POSITIONS, args)), **kwargs}
        self.passed = self["generation_config"]
        self.own = getattr(model, "generation_config", None)
        self.encoder_decoder = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
        self.masked = self["attention_mask"] is not None
        self.rows = self._rows()
        self.width = self._width()
        self.eos = token_ids(self.knob("eos_token_id"))
        self.pad = token_ids(self.knob("pad_token_id"))
        self.sequences_each = int(self.knob("num_return_sequences") or 1)

    def __getitem__(self, name: str) -> Any:
        return self.arguments.get(name)

    def forget(self) -> None:
        """Let go of every argument; the plain numbers stay."""
        self.arguments = {}
        self.passed = self.own = None

    def knob(self, name: str) -> Any:
        """A setting's value as `generate()` will see it."""
        value = self.arguments.get(name)
        if value is None and self.passed is not None:
            value = getattr(self.passed, name, None)
        return getattr(self.own, name, None) if value is None else value

    @property
    def ids(self) -> Any:
        """The prompt's token ids, where it was given as such."""
        given = self["inputs"] if self["inputs"] is not None else self["input_ids"]
        # An audio or image model's main input is two-dimensional too, but is no list of whole numbers
        whole = len(shape(given)) == 2 and not given.is_floating_point()
        return given if whole else None

    @property
    def mask(self) -> Any:
        """The attention mask, if one was given."""
        return self["attention_mask"]

    @property
    def cache(self) -> Any:
        """The cache passed in, if any."""
        return next(
            (self[name] for name in ("past_key_values", "cache", "cache_params") if self[name] is not None),
            None,
        )

    def _rows(self) -> int | None:
        """Prompts in the batch."""
        for value in (self.ids, self["inputs_embeds"], self.mask, self["inputs"]):
            if shape(value):
                return int(shape(value)[0])
        return None

    def _width(self) -> int | None:
        """Positions of the prompt, padding included; a mask may reach back over what a cache holds."""
        if not self.encoder_decoder:
            for value in (self["inputs_embeds"], self.mask):
                if len(shape(value)) >= 2:
                    return int(shape(value)[1])
        return int(self.ids.shape[1]) if self.ids is not None else None


def mode(call: Call) -> str:
    """How tokens are chosen, in the words of the recording."""
    if call["custom_generate"] is not None:
        return "other"
    if call.knob("cache_implementation") == "paged":
        return "continuous"
    if call.knob("prompt_lookup_num_tokens") is not None:
        return "prompt_lookup"
    if (
        call["assistant_model"] is not None
        or call.knob("use_mtp")
        or call.knob("assistant_early_exit") is not None
    ):
        return "assisted"
    if call.knob("dola_layers") is not None:
        return "other"
    sampling = call.knob("do_sample") is True
    if (call.knob("num_beams") or 1) > 1:
        return "beam_sample" if sampling else "beam"
    if not sampling and (call.knob("penalty_alpha") or 0) > 0 and (call.knob("top_k") or 0) > 1:
        return "contrastive"
    return "sample" if sampling else "greedy"


def settings(call: Call) -> dict[str, bool | int | float | str]:
    """The settings that bear on time: numbers, switches and known words, nothing a user wrote."""
    found: dict[str, bool | int | float | str] = {}
    for name in NUMBERS:
        value = call.knob(name)
        if type(value) in (bool, int, float) and value != NEUTRAL.get(name):
            found[name] = value
    if "max_new_tokens" in found:
        found.pop("max_length", None)
    cache = call.knob("cache_implementation")
    if cache in CACHES:
        found["cache_implementation"] = cache
    for name in ("assistant_model", "streamer"):
        if call[name] is not None:
            found[name.split("_")[0]] = True
    compiling = call.knob("compile_config")
    if compiling is not None:
        found["compile"] = True
        if type(getattr(compiling, "fullgraph", None)) is bool:
            found["compile_fullgraph"] = compiling.fullgraph
    if call.rows is not None:
        found["batch_rows"] = call.rows
    return found


def shape(value: Any) -> tuple[int, ...]:
    """A tensor's shape; empty for what is none."""
    return tuple(getattr(value, "shape", ()))


def elements(tensor: Any) -> int:
    """How much there would be to read."""
    count = 1
    for size in shape(tensor):
        count *= int(size)
    return count


def on_host(tensor: Any) -> bool:
    """Whether reading a tensor waits for no device."""
    return getattr(getattr(tensor, "device", None), "type", None) == "cpu"


def rows(tensor: Any) -> Rows | None:
    """A two-dimensional tensor's content, if the host has it."""
    if len(shape(tensor)) != 2 or not on_host(tensor) or elements(tensor) > READ_AT_MOST:
        return None
    return tensor.tolist()  # type: ignore[no-any-return]


def prompt_counts(call: Call, ids: Rows | None, mask: Rows | None) -> list[dict[str, int]] | None:
    """Prompt and padding tokens per prompt: by the mask, else by the padding token, as the engine does."""
    if mask is not None:
        return [{"prompt": len(row) - n, "padding": n} for row in mask for n in (row.count(0),)]
    if call.rows is None or call.width is None or call.masked:
        return None
    if ids is not None and call.pad and not set(call.pad) & set(call.eos):
        return [{"prompt": len(row) - n, "padding": n} for row in ids for n in (row.count(call.pad[0]),)]
    return [{"prompt": call.width, "padding": 0} for _ in range(call.rows)]


def without_padding(ids: Rows, mask: Rows | None) -> Rows:
    """The tokens of each prompt alone."""
    if mask is None or any(len(row) != len(marks) for row, marks in zip(ids, mask)):
        return ids
    return [[token for token, real in zip(row, marks) if real] for row, marks in zip(ids, mask)]


def token_ids(value: Any) -> list[int]:
    """A token id or several, however they were given."""
    if value is None:
        return []
    if hasattr(value, "tolist"):
        if not on_host(value):
            return []
        value = value.tolist()
    return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)]


def returned_ids(result: Any) -> Any:
    """The tensor of token ids in what `generate()` returned."""
    ids = getattr(result, "sequences", result)
    return ids if hasattr(ids, "shape") and len(ids.shape) == 2 else None


def endings(ids: Rows, start: int, eos: Sequence[int]) -> list[dict[str, Any]]:
    """Where each returned sequence ended and why; `start` is the width of what it began with."""
    found = []
    for row in ids:
        tail = row[start:]
        ends = [tail.index(token) for token in eos if token in tail]
        found.append(
            {"output": min(ends) + 1, "reason": "stop"} if ends else {"output": len(tail), "reason": "length"}
        )
    return found


def side_by_side(
    prompts: list[dict[str, int]] | None, ends: list[dict[str, Any]] | None
) -> list[dict[str, Any]] | None:
    """Prompts with their endings, as far as either is known; one prompt's sequences stand together."""
    if not ends or not prompts:
        return ends or (None if prompts is None else [dict(prompt) for prompt in prompts])
    each = max(1, len(ends) // len(prompts))
    return [{**prompts[min(i // each, len(prompts) - 1)], **end} for i, end in enumerate(ends)]


def cached_tokens(call: Call) -> int | None:
    """Prompt tokens whose keys and values a cache passed in holds already, over all rows."""
    cache = call.cache
    if cache is None:
        return 0
    try:
        if isinstance(cache, (tuple, list)):  # the form of old
            length = cache[0][0].shape[-2]
        elif getattr(cache, "is_compileable", False) and not _tensors_on_host(cache):
            return None  # a static cache counts on its device
        else:
            length = cache.get_seq_length()
        if hasattr(length, "device"):
            length = length.tolist() if on_host(length) else None
        return None if length is None or call.rows is None else int(length) * call.rows
    except Exception as error:
        signals.pass_on(error)
        return None  # a cache of another kind: not known


def _tensors_on_host(cache: Any) -> bool:
    layers = getattr(cache, "layers", None) or ()
    keys = [layer.keys for layer in layers if getattr(layer, "keys", None) is not None]
    keys = keys or list(getattr(cache, "key_cache", None) or ())
    return all(on_host(k) for k in keys)


def forward_shape(inputs: Any) -> tuple[int, int]:
    """(rows, positions) of a forward's inputs, as they were built for it; zeros where unknown."""
    for name in ("input_ids", "decoder_input_ids", "inputs_embeds"):
        value = inputs.get(name)
        if value is not None:
            shape = value.shape
            return shape[0], shape[1]
    return 0, 0
