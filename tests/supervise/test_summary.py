"""What a run says at its end: one line each, and nothing that is not so."""

from pathlib import Path

import pytest

from phasetrace.emit.endpoint import Delivery
from phasetrace.supervise.command import say
from phasetrace.supervise.outlets import Written
from phasetrace.supervise.summary import troubles

REFUSED = Delivery(1, 2, "refused")


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        (Written(delivery=REFUSED), True),
        (Written(delivery=REFUSED, dropped=5), False),
        (Written(delivery=REFUSED, failure="no space"), False),
    ],
)
def test_the_file_has_all_spans_only_where_it_has(tmp_path: Path, written: Written, whole: bool) -> None:
    *_, line = troubles(tmp_path / "trace.json", written, 0)
    assert line.startswith("2 spans were not delivered (refused)")
    assert ("has them all" in line) is whole


def test_what_an_endpoint_answered_is_one_line_and_obeyed_by_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say("not delivered (\x1b[31mred\nline)")
    err = capsys.readouterr().err
    assert "\x1b" not in err and err.count("\n") == 1
