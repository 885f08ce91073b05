"""What is the user's stays the user's: a planted secret is in nothing that phasetrace writes or sends."""

import base64
from pathlib import Path

import pytest

from tests.acceptance.conftest import SECRET
from tests.acceptance.real import Tour, files, phasetrace
from tests.emit.receivers import HttpReceiver

pytestmark = pytest.mark.slow


def test_the_application_did_what_it_was_to(tour: Tour) -> None:
    assert tour.done.returncode == 1  # its exception at the end
    assert len(tour.recording.requests) == 11
    assert {r.error_type for r in tour.recording.requests} == {None, "RuntimeError"}


def test_not_in_the_spool_while_it_runs(tour: Tour) -> None:
    assert any(name.endswith(".seg") for name in tour.seen)
    assert [name for name, content in tour.seen.items() if SECRET.encode() in content] == []


def test_not_in_the_trace(tour: Tour) -> None:
    assert [path for path in files(tour.folder) if SECRET.encode() in path.read_bytes()] == []


def test_not_in_the_summary(tour: Tour) -> None:
    assert "recorded 1 of 1 process" in tour.done.stderr
    assert SECRET not in tour.done.stderr


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_not_in_a_diagnosis(tour: Tour, tmp_path: Path, form: str) -> None:
    done = phasetrace("diagnose", str(tour.trace), "--format", form, "-o", str(tmp_path / "report"))
    assert done.returncode == 0, done.stderr
    assert SECRET not in (tmp_path / "report").read_text()


def test_not_in_a_waterfall(tour: Tour) -> None:
    for request in tour.recording.requests:
        done = phasetrace("show", str(tour.trace), "--request", request.id)
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout


def test_not_in_what_is_sent(tour: Tour, tour_receiver: HttpReceiver) -> None:
    sent = [*tour_receiver.spans, *tour_receiver.metrics]
    assert len(sent) > 500
    assert not any(SECRET.encode() in message.SerializeToString() for message in sent)
    assert SECRET not in str(tour_receiver.resources)
    assert SECRET not in str(tour_receiver.headers)


def test_the_salt_of_the_hashes_is_not_in_the_trace(tour: Tour) -> None:
    salt = next(content for name, content in tour.seen.items() if name.endswith("/salt"))
    trace = tour.trace.read_bytes()
    for form in (salt, salt.hex().encode(), base64.b64encode(salt).rstrip(b"=")):
        assert form not in trace
