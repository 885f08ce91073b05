"""Measures the machine and a model, as a program of its own in the application's Python: `phasetrace bench`.

Prints one JSON object a line: {"progress": ...} while it works, {"what": ..., numbers} for each measurement.
Imports torch, and transformers only for a model. Nothing else of this package is needed, nor loads it.
"""

import json
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

ROUNDS = 5  # of each measurement, after one that is thrown away
STEPS = 12  # decode steps of a measurement
SEED_TOKENS = 512  # read, and written: the seed measurement
LENGTHS = (16, 64, 128, 256, 512, 1024)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
CONTEXTS = (128, 512, 1024, 2048)
LONGEST_S = 20.0  # rounds end once they have taken this; a measurement that takes half of it ends its row


def say(**what: Any) -> None:
    """One line of output."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Machine:
    """A device of torch, and how to wait for it."""

    def __init__(self, torch: Any, name: Optional[str], dtype: Optional[str]) -> None:
        self.torch = torch
        self.name = name or ("cuda" if torch.cuda.is_available() else "cpu")
        self.kind = self.name.split(":")[0]
        self.dtype = getattr(torch, dtype or ("float32" if self.kind == "cpu" else "bfloat16"))

    def finish(self) -> None:
        """Wait until the device has done what it was given."""
        wait = self.of_kind("synchronize")
        if wait is not None:
            wait(*(() if self.kind == "mps" else (self.name,)))

    def called(self) -> str:
        """The product's name, where torch knows it."""
        name = self.of_kind("get_device_name")
        return str(name(self.name)) if name is not None else self.kind

    def of_kind(self, function: str) -> Any:
        """A function of this kind of device, such as `torch.cuda.synchronize`; None for the host."""
        return None if self.kind == "cpu" else getattr(getattr(self.torch, self.kind, None), function, None)

    def seconds(self, work: Callable[[], Any], rounds: int = ROUNDS) -> float:
        """The median time of some work, after one run that warms up."""
        work()
        taken = []
        for _ in range(rounds):
            self.finish()
            begin = time.perf_counter()
            work()
            self.finish()
            taken.append(time.perf_counter() - begin)
            if sum(taken) > LONGEST_S:
                break
        return statistics.median(taken)


def measure_machine(machine: Machine, quick: bool) -> None:
    """Memory bandwidth by a copy (read and write), arithmetic by a product of matrices."""
    torch = machine.torch
    say(progress="memory bandwidth and arithmetic")
    size = (64 << 20) if machine.kind == "cpu" else (512 << 20)
    source = torch.empty(size // 2 if quick else size, dtype=torch.uint8, device=machine.name)
    target = torch.empty_like(source)
    taken = machine.seconds(lambda: target.copy_(source))
    n = (1024 if quick else 2048) if machine.kind == "cpu" else 8192
    a = torch.ones(n, n, dtype=machine.dtype, device=machine.name)
    multiplied = machine.seconds(lambda: a @ a)
    say(
        what="machine",
        device=machine.name,
        name=machine.called(),
        threads=torch.get_num_threads(),
        dtype=str(machine.dtype).split(".")[-1],
        bandwidth_bytes_s=2 * source.numel() / taken,
        flops_s=2 * n**3 / multiplied,
    )


def load(machine: Machine, options: dict[str, Any]) -> Any:
    """The user's model, or one with random weights: time does not depend on what they say."""
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    say(progress="loading the model")
    if options["model"]:
        model = AutoModelForCausalLM.from_pretrained(options["model"])
    else:
        hidden = options["hidden_size"]
        heads = max(1, hidden // 64)
        config = LlamaConfig(
            hidden_size=hidden,
            intermediate_size=hidden * 3,
            num_hidden_layers=options["layers"],
            num_attention_heads=heads,
            num_key_value_heads=heads,
            vocab_size=8192,
            max_position_embeddings=8192,
        )
        model = LlamaForCausalLM(config)
    model = model.to(device=machine.name, dtype=machine.dtype).eval()
    config = model.config
    heads = getattr(config, "num_attention_heads", None)
    say(
        what="model",
        name=options["model"] and options["model"].rstrip("/").split("/")[-1],
        parameters=sum(p.numel() for p in model.parameters()),
        weight_bytes=sum(p.numel() * p.element_size() for p in model.parameters()),
        layers=getattr(config, "num_hidden_layers", None),
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or (heads and config.hidden_size // heads),
        hidden_size=getattr(config, "hidden_size", None),
    )
    return model


class Runs:
    """Prefills and decodes of one model."""

    def __init__(self, machine: Machine, model: Any, quick: bool) -> None:
        self.machine = machine
        self.model = model
        self.vocabulary = model.config.vocab_size
        self.longest = getattr(model.config, "max_position_embeddings", None) or 2048
        self.quick = quick

    def tokens(self, batch: int, length: int) -> Any:
        """Some input: which tokens makes no difference."""
        torch = self.machine.torch
        ids = torch.arange(batch * length, device=self.machine.name) % self.vocabulary
        return ids.reshape(batch, length)

    def prefill(self, batch: int, length: int) -> Any:
        """Read a prompt; gives the cache."""
        return self.model(input_ids=self.tokens(batch, length), use_cache=True).past_key_values

    def read(self, length: int) -> float:
        """Seconds to read a prompt."""
        return self.machine.seconds(lambda: self.prefill(1, length), 2 if self.quick else ROUNDS)

    def write(self, batch: int, context: int, steps: int) -> list[float]:
        """Seconds of each step that writes one token a sequence after so many."""
        cache = self.prefill(batch, context)
        ids = self.tokens(batch, 1)
        taken = []
        for _ in range(steps + 1):
            self.machine.finish()
            begin = time.perf_counter()
            cache = self.model(input_ids=ids, past_key_values=cache, use_cache=True).past_key_values
            self.machine.finish()
            taken.append(time.perf_counter() - begin)
        return taken[1:]

    def rows(self) -> None:
        """All measurements, each row as far as it stays quick and fits."""
        for length in self.row(LENGTHS):
            say(progress="prefill of %d tokens" % length)
            taken = self.read(length)
            say(what="prefill", tokens=length, seconds=taken)
            if taken > LONGEST_S / 2:
                break
        for batch in self.row(BATCHES):
            say(progress="decode of %d at a time" % batch)
            taken = statistics.median(self.write(batch, 64, STEPS))
            say(what="decode", batch=batch, context=64 + STEPS // 2, seconds=taken)
            if taken * STEPS > LONGEST_S / 2:
                break
        for context in self.row(CONTEXTS):
            say(progress="decode after %d tokens" % context)
            taken = statistics.median(self.write(1, context, STEPS))
            say(what="decode", batch=1, context=context + STEPS // 2, seconds=taken)
        count = min(SEED_TOKENS, self.longest // 2) // (8 if self.quick else 1)
        say(progress="%d tokens read, %d written" % (count, count))
        say(what="seed", tokens=count, read_s=self.read(count), written_s=sum(self.write(1, count, count)))

    def row(self, values: Sequence[int]) -> list[int]:
        """The values that the model's positions allow; half of them when it should be quick."""
        fitting = [v for v in values if v + STEPS + 1 < self.longest]
        return fitting[: max(2, len(fitting) // 2)] if self.quick else fitting


def main(options: dict[str, Any]) -> None:
    """All of it; a missing package is said, not raised."""
    try:
        import torch
    except ImportError:
        say(error="this Python has no torch; name one that has with --python")
        return
    try:
        machine = Machine(torch, options["device"], options["dtype"])
        with torch.inference_mode():
            measure_machine(machine, options["quick"])
            Runs(machine, load(machine, options), options["quick"]).rows()
    except ImportError as missing:
        say(error="this Python has no %s; only the machine was measured" % (missing.name or "transformers"))
    except (OSError, RuntimeError, ValueError, AttributeError) as failed:
        say(error="%s: %s" % (type(failed).__name__, " ".join(str(failed).split())[:200]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
