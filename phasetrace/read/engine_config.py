"""What stands beside a trace that carries no configuration: the engine's knobs, the model, the hardware.

The log of a vLLM server, or JSON: `{"engine": {"name": "", "version": "", "knobs": {}}, "model": {},
"hardware": {}}` with the keys that `summary/1` has for the last two; numbers, switches and words beside them
are facts of the process. What is not said of a known model or device comes from the tables of `analyze`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from os import PathLike, fspath
from typing import Any

from phasetrace.analyze.devices import device
from phasetrace.analyze.shapes import known_shape
from phasetrace.errors import UsageError
from phasetrace.mapping import derived_id
from phasetrace.model import Ceilings, ModelFacts, Process, Recording, Request
from phasetrace.read.json_text import parse
from phasetrace.read.source import Source
from phasetrace.read.vllm_log import from_vllm_log, is_vllm_log

Scalar = bool | int | float | str
_PARTS = ("engine", "model", "hardware")
_KINDS = {"gpu": "cuda", "cpu": "cpu"}  # hardware -> device
_HARDWARE = "hardware_"  # in the facts of a process
_LONGEST_WORD = 64
_LARGEST = 1e30  # of a number: of parameters, bytes or operations a second
_SHARED, _CACHING = "shared_prefix_tokens", "enable_prefix_caching"
_COUNTS = {f.name for f in fields(ModelFacts) if f.type == "int | None"}
_WORDS = {"name", "architecture", "dtype", "quantization"}


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """As it was stated."""

    engine: str | None = None
    version: str | None = None
    facts: Mapping[str, Scalar] = field(default_factory=dict)  # knobs, and what else was said
    model: ModelFacts | None = None
    ceilings: Ceilings | None = None

    def beside(self, recording: Recording, process: str | None = None) -> Recording:
        """The recording with what it does not say itself; what it says itself counts more.

        Args:
            recording: of traces.
            process: the key of the one that this is about; all of them without.
        """
        keys = {request.process for request in recording.requests if process in (None, request.process)}
        known = {process.key: process for process in recording.processes}
        added = [self._process(known.get(key) or Process(key, 0, 0), recording) for key in sorted(keys)]
        models = dict(recording.models)
        if self.model is not None:
            models.setdefault(self.model.key, self.model)
        return replace(
            recording,
            processes=(*(p for p in recording.processes if p.key not in keys), *added),
            models=models,
            requests=self._requests(recording, keys),
        )

    def _process(self, process: Process, recording: Recording) -> Process:
        name = self.engine or next(r.engine for r in recording.requests if r.process == process.key)
        engines = {name: self.version} if self.version is not None else {}
        return replace(process, engines={**engines, **process.engines}, facts={**self.facts, **process.facts})

    def _requests(self, recording: Recording, keys: set[str]) -> tuple[Request, ...]:
        shared = self.facts.get(_SHARED)
        cached = shared if isinstance(shared, int) and self.facts.get(_CACHING) is True else None
        first = min((request.arrival_ns for request in recording.requests), default=None)
        made = []
        for request in recording.requests:
            changed: dict[str, Any] = {}
            if request.process not in keys:
                made.append(request)
                continue
            if self.model is not None and request.model not in recording.models:
                changed["model"] = self.model.key
            if request.engine == "unknown" and self.engine is not None:
                changed["engine"] = self.engine
            prompt = request.prompt_tokens
            if cached and request.cached_tokens is None and prompt and request.arrival_ns != first:
                changed["cached_tokens"] = min(cached, prompt)
                changed["derived"] = request.derived | {"cached_tokens"}
            made.append(replace(request, **changed) if changed else request)
        return tuple(made)


def engine_config(path: str | PathLike[str]) -> EngineConfig:
    """Read it.

    Raises:
        UsageError: in one line that names the file and the key.
    """
    source = Source(fspath(path), instead="name a server's log, or JSON with engine, model and hardware")
    try:
        document = _document(source)
    finally:
        source.close()
    if not isinstance(document, dict) or not any(part in document for part in _PARTS):
        raise UsageError(f"{source.name} says nothing of an engine: it has none of {', '.join(_PARTS)}")
    return config_of(document, source.name)


def config_of(document: dict[str, Any], name: str) -> EngineConfig:
    """What a document states; `name` is what errors call it."""
    engine, model, hardware = (_part(document, part, f"{name}: ") for part in _PARTS)
    said = {key: value for key, value in document.items() if key not in _PARTS}
    knobs = _part(engine, "knobs", f"{name}: engine.")
    machine = {_HARDWARE + key: value for key, value in hardware.items()}
    return EngineConfig(
        engine=_word(engine.get("name")),
        version=_word(engine.get("version")),
        facts=_scalars({**machine, **said, **knobs}),
        model=_model(model, hardware, name),
        ceilings=_ceilings(hardware, name),
    )


def stated_ceilings(recording: Recording) -> Ceilings | None:
    """Of the hardware that was stated beside the trace or in it; None where none or several were."""
    stated = [
        {key.removeprefix(_HARDWARE): value for key, value in p.facts.items() if key.startswith(_HARDWARE)}
        for p in recording.processes
    ]
    told = [hardware for hardware in stated if hardware]
    return _ceilings(told[0], "hardware") if told and all(other == told[0] for other in told) else None


def _document(source: Source) -> Any:
    data = source.whole()
    try:
        return parse(data)
    except ValueError:
        text = data.decode("utf-8", "replace")
        if is_vllm_log(text):
            return from_vllm_log(text)
    raise UsageError(f"{source.name} is neither a JSON object nor the log of a vLLM server") from None


def _part(document: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    part = document.get(name)
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise UsageError(f"{where}{name} is no object")
    return part


def _model(stated: dict[str, Any], hardware: dict[str, Any], source: str) -> ModelFacts | None:
    if not stated:
        return None
    known: dict[str, Any] = {}
    for key in _COUNTS & stated.keys():
        if (number := _number(stated, key, f"{source}: model.{key}")) is not None:
            known[key] = round(number)
    for key in _WORDS & stated.keys():
        known[key] = _word(stated[key])
    bytes_each = _number(stated, "bytes_per_weight", f"{source}: model.bytes_per_weight")
    if bytes_each is not None and "parameters" in known and "weight_bytes" not in known:
        known["weight_bytes"] = round(known["parameters"] * bytes_each)
    known["device"] = _word(stated.get("device")) or _KINDS.get(str(hardware.get("kind")))
    if (shape := known_shape(known.get("name"))) is not None:
        for key in ("parameters", "active_parameters", "layers", "kv_heads", "head_dim", "hidden_size"):
            if key not in known and (value := getattr(shape, key)) is not None:
                known[key] = round(value)
    return ModelFacts(key=derived_id(8, "stated model", sorted(map(str, known.items()))), **known)


def _ceilings(hardware: dict[str, Any], source: str) -> Ceilings | None:
    bandwidth, tflops, count = (
        _number(hardware, key, f"{source}: hardware.{key}")
        for key in ("memory_bandwidth_gb_s", "tflops", "count")
    )
    listed = device(_word(hardware.get("name")))
    if listed is not None:
        bandwidth, tflops = bandwidth or listed.bandwidth_gb_s, tflops or listed.tflops
    if bandwidth is None:
        return None
    devices = count or 1
    return Ceilings(
        bandwidth_bytes_s=bandwidth * 1e9 * devices,
        flops_s=tflops * 1e12 * devices if tflops is not None else None,
        source="stated" if listed is None else listed.source,
    )


def _number(part: dict[str, Any], key: str, where: str) -> float | None:
    value = part.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _LARGEST:
        raise UsageError(f"{where} is {value!r:.40}, which is no positive number")
    return float(value)


def _scalars(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """Numbers, switches and short words; anything else is no knob."""
    return {
        str(key): value
        for key, value in values.items()
        if isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= _LONGEST_WORD)
    }


def _word(value: Any) -> str | None:
    return value[:_LONGEST_WORD] if isinstance(value, str) and value else None
