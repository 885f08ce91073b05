import pytest

from phasetrace.cli import main
from phasetrace.semconv import Cause


def test_without_a_cause_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {cause} " in out for cause in Cause)
    assert all(line == line.rstrip() and len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize("cause", [cause.value for cause in Cause])
def test_every_cause_has_a_page(cause: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", cause]) == 0
    out = capsys.readouterr().out
    assert cause in out.splitlines()[0]


def test_a_fix_is_to_be_compared_and_an_answer_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    for cause, said in (("padding", True), ("healthy", False), ("unknown", False)):
        main(["explain", cause])
        assert ("phasetrace compare" in capsys.readouterr().out) is said


def test_a_cause_may_be_written_as_people_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "No_KV cache"]) == 0
    assert "no-kv-cache" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "hint"),
    [("pading", "did you mean padding?"), ("\x1b[2Jzzz", "`phasetrace explain` lists the causes")],
)
def test_a_typo_gets_one_line_and_a_suggestion(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", word]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and captured.err.endswith(f"{hint}\n")
    assert "\x1b" not in captured.err
