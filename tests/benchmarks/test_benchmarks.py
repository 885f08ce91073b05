"""Every benchmark runs, at tiny sizes; what it measures is not looked at."""

from pathlib import Path

import pytest

from benchmarks import (
    bench_diagnose,
    bench_reading,
    bench_recorder,
    bench_report,
    bench_run,
    bench_startup,
    bench_traces,
    bench_vllm,
    bench_vllm_run,
)
from benchmarks.__main__ import NAMES
from benchmarks.figure import Figure, dump, figure, load, spread, table


def test_a_limit_and_a_rate_are_both_over_budget_above_one() -> None:
    assert figure("time", [5, 2, 20], "s", 10).ratio == 0.5
    assert figure("rate", [50, 10, 200], "/s", 100, at_least=True).ratio == 2
    assert figure("beside", [1], "s").ratio is None


def test_a_few_values_spread_from_the_smallest_to_the_largest_and_many_over_their_quartiles() -> None:
    assert spread([3, 1, 2]) == (1, 3)
    assert spread([1, 2, 3, 4, 100]) == (2, 4)


def test_the_table_says_what_is_over_budget() -> None:
    figures = [figure("fast", [1.0], "s", 10), figure("slow", [25.0], "s", 10)]
    _, fast, slow = table(figures).splitlines()
    assert "0.10" in fast and "OVER" not in fast
    assert "2.50  OVER" in slow


def test_figures_pass_between_processes() -> None:
    figures = [figure("one", [1.5, 2.5], "us", 2), figure("two", [3], "/s", 1, at_least=True)]
    assert load(dump(figures)) == figures


def test_all_benchmarks_are_smoke_tested() -> None:
    assert NAMES == [
        "diagnose",
        "reading",
        "recorder",
        "report",
        "run",
        "startup",
        "traces",
        "vllm",
        "vllm_run",
    ]


def test_recorder() -> None:
    check(list(bench_recorder.of_size(rounds=1, calls=20)))


def test_startup() -> None:
    check(list(bench_startup.of_size(pairs=2, few=1)))


def test_diagnose() -> None:
    check(list(bench_diagnose.of_size(tokens=70_000, rounds=1)))


def test_reading() -> None:
    check(list(bench_reading.of_size(spans=500, rounds=1)))


def test_report() -> None:
    check(list(bench_report.of_size(requests=2, rounds=1)))


def test_traces(tmp_path: Path) -> None:
    check(list(bench_traces.encoding(1, 1)))
    check(list(bench_traces.reading(tmp_path, 2, 1)))
    check(list(bench_traces.memory(tmp_path, 1)))


@pytest.mark.slow
@pytest.mark.skipif(not bench_run.TORCH_PYTHON.exists(), reason="`make engines` has not run")
def test_run() -> None:
    check(list(bench_run.of_model("model", (32, 1, 1, 4, 1), pairs=1, budget=0.1)))


@pytest.mark.slow
def test_vllm() -> None:
    if not bench_vllm.PYTHON.exists():
        pytest.skip("vLLM is not installed; `make engines-vllm` sets it up")
    check(list(bench_vllm.measure(quick=True)))


@pytest.mark.slow
def test_vllm_run() -> None:
    if not bench_vllm_run.VLLM_PYTHON.exists():
        pytest.skip("vLLM is not installed; `make engines-vllm` sets it up")
    check(list(bench_vllm_run.of_pairs(1)))


def check(figures: list[Figure]) -> None:
    assert figures
    assert all(each.rounds and each.what and each.low <= each.median <= each.high for each in figures)
