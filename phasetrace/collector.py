"""Python's own garbage collector, kept from what it cannot help with."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """No cyclic garbage is looked for meanwhile, nor ever in what is left: a recording is in no cycle.

    It is millions of objects, and looking through them takes a third of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
