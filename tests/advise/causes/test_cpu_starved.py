"""Threads that had no CPU, by the kernel's own count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from phasetrace.advise.causes import cpu_starved
from phasetrace.analyze.host_use import host_use
from phasetrace.model import Finding, Recording, Samples, Usage
from tests.advise import scenes
from tests.advise.asked import ask
from tests.builders import EPOCH, MS, PROCESS


def looked_at(
    recording: Recording, cpu_ms: Sequence[int], delay_ms: Sequence[int], **more: Sequence[int]
) -> Recording:
    times = np.arange(len(cpu_ms)) * 500 * MS + EPOCH
    columns = {Usage.CPU: np.array(cpu_ms) * MS, Usage.CPU_DELAY: np.array(delay_ms) * MS}
    device = [Samples("", 0, times, {Usage.DEVICE_BUSY: np.array(values)}) for values in more.values()]
    return replace(recording, samples=(Samples(PROCESS, None, times, columns), *device))


def test_threads_that_wait_for_a_cpu_half_the_time_are_starved() -> None:
    finding = ask(cpu_starved, looked_at(scenes.calls(), [0, 400, 800, 1200], [0, 400, 800, 1200]))
    assert isinstance(finding, Finding)
    assert finding.cause == "cpu-starved" and "50 %" in finding.evidence[0]
    assert finding.prediction is not None and 1.2 < finding.prediction.ratio < 2


def test_a_few_percent_are_what_any_host_has() -> None:
    assert ask(cpu_starved, looked_at(scenes.calls(), [0, 400, 800], [0, 10, 20])) is None


def test_without_samples_or_without_the_count_there_is_nothing_to_say() -> None:
    assert ask(cpu_starved, scenes.calls()) is None
    unread = looked_at(scenes.calls(), [0, 400, 800], [0, 0, 0])
    unread.samples[0].columns[Usage.CPU_DELAY][:] = -1
    assert ask(cpu_starved, unread) is None


def test_only_the_time_of_the_requests_counts() -> None:
    recording = scenes.calls(n=1)
    end = recording.requests[0].finished_ns
    assert end is not None
    late = looked_at(recording, [0, 100, 5_000, 9_000], [0, 0, 5_000, 9_000])
    times = np.array([EPOCH, end, end + 1, end + 2])
    late = replace(late, samples=(replace(late.samples[0], times_ns=times),))
    used = host_use(late, late.requests)
    assert used is not None and used.cpu_ns == 100 * MS and used.delay_ns == 0


def test_a_count_that_falls_lost_a_thread_and_goes_on() -> None:
    used = host_use(looked_at(scenes.calls(), [0, 10, 20], [90, 30, 40]), scenes.calls().requests)
    assert used is not None and used.delay_ns == 10 * MS


def test_a_device_is_busy_on_average() -> None:
    used = host_use(
        looked_at(scenes.calls(), [0, 1, 2], [0, 0, 0], busy=[20, -1, 40]), scenes.calls().requests
    )
    assert used is not None and used.device_busy == pytest.approx(0.3)
