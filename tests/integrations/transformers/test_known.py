"""What is told once a recorder."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import Spool
from phasetrace_transformers import facts, known
from tests.integrations.agent import read_spool
from tests.integrations.transformers.fakes import FakeModel, Parameter


def told(folder: Path) -> set[tuple[int, str]]:
    """Models told of in a spool: number and device. What opens a spool says again what is known by then."""
    found = [layout.decode_blob(payload) for kind, payload in read_spool(folder) if kind == layout.FACTS]
    return {(ident, data["device"]) for ident, scope, _, data in found if scope == layout.MODEL}


def test_every_recorder_is_told_of_a_model_once(tmp_path: Path) -> None:
    model = FakeModel(Parameter(5, device="cuda"))
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        recorder = Recorder(Spool(str(folder)))
        found = known.seen(recorder, model)
        assert known.seen(recorder, model) is found
        assert told(folder) == {(found.key, "cuda")}
        recorder.off()


def test_threads_that_see_a_model_at_the_same_time(tmp_path: Path, monkeypatch: Any) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    model = FakeModel(Parameter(5))
    both = threading.Barrier(2)
    plain = facts.model_facts

    def together(model: Any) -> Mapping[str, Any]:
        both.wait(10)
        return plain(model)

    monkeypatch.setattr(facts, "model_facts", together)
    keys: list[int] = []
    threads = [threading.Thread(target=lambda: keys.append(known.seen(recorder, model).key)) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert keys[0] == keys[1]
    assert told(tmp_path) == {(keys[0], "cpu")}
