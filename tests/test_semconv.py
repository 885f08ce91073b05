"""The list of names is sound, and the page made of it is current."""

import importlib.util
from pathlib import Path
from types import ModuleType

from phasetrace.semconv import Attribute, Metric, SpanName


def script(root: Path) -> ModuleType:
    path = root / "scripts" / "write_semantic_conventions.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(root: Path) -> None:
    module = script(root)
    assert module.DOCUMENT.read_text(encoding="utf-8") == module.document(), (
        "run `python scripts/write_semantic_conventions.py`"
    )


def test_every_name_is_listed_once_and_means_something() -> None:
    for names in (Attribute, Metric, SpanName):
        assert len({str(name) for name in names}) == len(names.__members__)
        assert all(name.meaning for name in names)


def test_no_key_begins_with_a_prefix_of_others() -> None:
    prefixes = [key for key in Attribute if key.endswith(".")]
    clashes = [(p, key) for p in prefixes for key in Attribute if key != p and key.startswith(p)]
    assert clashes == []


def test_bucket_bounds_ascend() -> None:
    for metric in Metric:
        assert list(metric.bounds) == sorted(set(metric.bounds))
