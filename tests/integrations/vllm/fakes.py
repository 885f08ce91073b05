"""vLLM's objects as far as this integration looks at them, and a recorder that only remembers."""

from collections import deque
from types import SimpleNamespace
from typing import Any

from phasetrace_agent import layout


class Heard:
    """A recorder whose records are tuples: the verb, then its arguments."""

    def __init__(self) -> None:
        self.enabled = True
        self.spool_folder = ""  # where there is no salt
        self.said: list[tuple[Any, ...]] = []
        self._ids = 0

    def next_id(self) -> int:
        self._ids += 1
        return self._ids

    def __getattr__(self, verb: str) -> Any:
        return lambda *args: self.said.append((verb, *args))

    def plain_step(self, stream: int, index: int, begin: int, codes: int, *rest: int) -> None:
        """The same as a step of four parts in which nothing changed."""
        *ends, number = rest
        parts = tuple(codes.to_bytes(4, "little"))
        self.said.append(("step", stream, index, begin, parts, tuple(ends), (), (), (), (), number))

    def ended(self, *told: Any) -> None:
        """The same as `finished`, through its bytes."""
        self.said.append(("finished", *layout.decode_ended(layout.encode_ended(*told))))

    def of(self, verb: str) -> list[tuple[Any, ...]]:
        """The arguments of all records of a verb."""
        return [said[1:] for said in self.said if said[0] == verb]

    @property
    def batches(self) -> list[tuple[Any, ...]]:
        """Joined, left, scheduled and yielded of each step."""
        return [tuple(list(column) for column in step[5:9]) for step in self.of("step")]


class Waiting(deque[Any]):
    """The scheduler's queue."""

    def peek_request(self) -> Any:
        return self[0]


def named(name: str) -> SimpleNamespace:
    """A member of an enum."""
    return SimpleNamespace(name=name)


def request(name: str, prompt: int = 8, output: int = 0, reason: str = "LENGTH", **more: Any) -> Any:
    """A request in the engine core; it has ended for that reason when it is asked."""
    return SimpleNamespace(
        request_id=name,
        num_prompt_tokens=prompt,
        num_output_tokens=output,
        num_tokens=prompt + output,
        num_computed_tokens=0,
        prefill_stats=SimpleNamespace(num_local_cached_tokens=0, num_external_cached_tokens=0),
        get_finished_reason=lambda: named(reason),
        status=named("WAITING"),
        lora_request=None,
        **more,
    )


def scheduler(*waiting: Any, running: int = 0, **more: Any) -> Any:
    """A scheduler with room: 4 sequences, 64 tokens a step, 100 blocks."""
    fields: dict[str, Any] = {
        "waiting": Waiting(waiting),
        "running": [object()] * running,
        "requests": {},
        "max_num_running_reqs": 4,
        "max_num_scheduled_tokens": 64,
        "scheduler_config": SimpleNamespace(enable_chunked_prefill=True),
        "lora_config": None,
        "kv_cache_manager": SimpleNamespace(
            block_pool=SimpleNamespace(
                num_gpu_blocks=100, free_block_queue=SimpleNamespace(num_free_blocks=90)
            )
        ),
    }
    return SimpleNamespace(**{**fields, **more})


def scheduled(new: tuple[str, ...] = (), resumed: tuple[str, ...] = (), **counts: int) -> Any:
    """What `schedule()` returns."""
    return SimpleNamespace(
        num_scheduled_tokens=counts,
        total_num_scheduled_tokens=sum(counts.values()),
        scheduled_new_reqs=[SimpleNamespace(req_id=name) for name in new],
        scheduled_cached_reqs=SimpleNamespace(resumed_req_ids=set(resumed)),
        num_invalid_spec_tokens=None,
        scheduled_spec_decode_tokens={name: [0] * (n - 1) for name, n in counts.items() if 1 < n < 8},
    )


def ran(**tokens: int) -> Any:
    """What the model runner returns: sampled tokens by row, and the rows of the requests."""
    return SimpleNamespace(
        sampled_token_ids=[[0] * n for n in tokens.values()],
        req_id_to_index={name: row for row, name in enumerate(tokens)},
    )


def outputs(**tokens: int) -> Any:
    """What `update_from_output()` returns: tokens by request, for one client."""
    given = [
        SimpleNamespace(request_id=name, new_token_ids=[0] * n, finish_reason=None)
        for name, n in tokens.items()
    ]
    return {0: SimpleNamespace(outputs=given)}
