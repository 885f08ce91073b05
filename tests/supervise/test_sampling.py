"""What a process uses is looked at from outside, and devices only where they can be asked."""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace.model import Usage
from phasetrace.supervise import sampling
from phasetrace.supervise.devices import Devices
from phasetrace.supervise.processes import User, start_of
from phasetrace.supervise.sampling import Sampler, usage_of
from tests.supervise.runs import Runs, app

ME = User("a1", os.getpid(), start_of(os.getpid()))


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_process_that_works_uses_cpu_time() -> None:
    before = usage_of(ME.pid, ME.started)
    burn(0.1)
    after = usage_of(ME.pid, ME.started)
    assert before is not None and after is not None
    assert 50_000_000 <= after[Usage.CPU] - before[Usage.CPU] < 10_000_000_000
    assert after[Usage.MEMORY] > 1 << 20 and after[Usage.THREADS] >= 1
    assert after[Usage.CPU_DELAY] >= 0


def test_a_process_that_is_gone_or_another_by_now_tells_nothing() -> None:
    assert usage_of(ME.pid, ME.started + 1) is None
    assert usage_of(2**22 + 1, 0) is None


def test_looks_are_handed_over_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "EVERY_S", 0.0)
    sampler = Sampler()
    for _ in range(sampling.KEPT - 1):
        sampler.look([ME])
    assert sampler.take() == ()
    sampler.look([ME])
    (samples,) = sampler.take()
    assert len(samples) == sampling.KEPT and samples.process == "a1"
    assert all(len(column) == len(samples) for column in samples.columns.values())
    assert sampler.take(all_of_it=True) == ()


def test_it_looks_no_more_often_than_once_a_second() -> None:
    sampler = Sampler()
    sampler.look([ME])
    sampler.look([ME])
    (samples,) = sampler.take(all_of_it=True)
    assert len(samples) == 1


def fake_nvml(busy: int) -> Any:
    return SimpleNamespace(
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda place: place,
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=busy + handle),
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=1 << 30),
        nvmlDeviceGetClockInfo=lambda handle, kind: 1980,
    )


def test_devices_tell_how_busy_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(60))
    found = dict(Devices().look())
    assert found[1] == {Usage.DEVICE_BUSY: 61, Usage.MEMORY: 1 << 30, Usage.DEVICE_CLOCK: 1980}
    sampler = Sampler()
    sampler.look([])
    assert [samples.device for samples in sampler.take(all_of_it=True)] == [0, 1]


def test_without_a_driver_there_are_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no driver")

    broken = fake_nvml(0)
    broken.nvmlInit = fail
    monkeypatch.setitem(sys.modules, "pynvml", broken)
    assert list(Devices().look()) == []


def test_a_run_holds_samples_of_its_processes(runs: Runs) -> None:
    assert runs.run(app("goes-on", 2)).returncode == 0
    recorded = runs.recording()
    keys = {process.key for process in recorded.processes}
    assert recorded.samples and {samples.process for samples in recorded.samples} <= keys
