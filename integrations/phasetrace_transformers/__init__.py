"""Records Hugging Face `generate()`: transformers 4.46 and newer; tested with 4.46.3, 4.57.6 and 5.24.0.

What is hooked, and why there:

- `GenerationMixin.generate` is the request. A `generate` inside another in the same thread belongs to the
  outer one.
- `prepare_inputs_for_generation` and `_update_model_kwargs_for_generation`, on the class that defines them:
  the forward is what runs between them. Models themselves are never wrapped, so that `fullgraph=True`
  compiles.
- `LogitsProcessorList.__call__` and `StoppingCriteriaList.__call__`: logits processing, sampling, and the
  time of the tokens.
- `put` and `end` of the streamer that is passed; the encoder's preparation; the candidate generators of
  assisted decoding.
- `preprocess` and `postprocess` of the text pipelines: tokenising and detokenising.
- Continuous batching: `add_request`, `add_waiting_request`, `prepare_next_batch`, `_generation_step`,
  `update_batch`.

What is not seen: a loop written by hand around `model(...)`, also one in a model's own `generate` that
never calls the inherited one; what such an override does around the inner `generate` it calls; tokenising
outside of a pipeline (it counts as the application's time); a streamer whose methods sit on the instance.
With assisted decoding a forward's end is an upper bound (`forward_end`): accepting tokens and cropping
the cache happen before the next hook. On an accelerator, host times run ahead of the device; device times
stand beside them where events can give them without waiting (not verified on a GPU yet).
"""

from __future__ import annotations

import sys

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder

SUPPORTED = (4, 46)
# What the hooks of one record cost, in plain wrapped calls of `calibrate`, as measured: a step's four keep a
# timeline, a request's one reads arguments, configuration and result
HOOKS = {"step": 14, "arrived": 250, "finished": 300}
# Of the engine's facts: there is one transformers in a process, and vLLM, which is 0, may be beside it. What
# is told under one key is merged, and a forked child tells it again.
_KEY = 1


def instrument(recorder: Recorder) -> None:
    """Hook what has been imported of transformers. Called again as more of it is; again does no harm."""
    version = str(getattr(sys.modules.get("transformers"), "__version__", ""))
    reason = _refusal(version)
    if reason is None:
        reason = _hook(recorder)
    refused = {} if reason is None else {"refused": reason}
    recorder.facts(layout.ENGINE, _KEY, {"engine": "transformers", "version": version, **refused})


def _hook(recorder: Recorder) -> str | None:
    """Wrap what is there; a reason why not, else None."""
    from . import continuous, hooks, pipelines

    generation = sys.modules.get("transformers.generation.utils")
    if generation is not None and hasattr(generation, "GenerationMixin"):
        missing = hooks.hook_generation(recorder, generation)
        if missing:
            return "no " + ", ".join(missing)
    pipelines.hook_pipelines()
    continuous.hook_continuous(recorder)
    return None


def _refusal(version: str) -> str | None:
    """Why this version is not hooked."""
    parts = version.split(".")
    try:
        known = (int(parts[0]), int(parts[1]))
    except (ValueError, IndexError):
        return "version unknown"
    return None if known >= SUPPORTED else "older than %d.%d" % SUPPORTED
