"""`summary/1`: a table of numbers instead of a trace -> Table. An unknown key is an error that names it."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import fields
from typing import Any, TypeVar

from phasetrace.errors import TraceFormatError
from phasetrace.model import Goal, Group, Table, TableHardware, TableModel
from phasetrace.read.measured import is_finite
from phasetrace.read.outline import outline
from phasetrace.read.source import Source

VERSION = "summary/1"
LARGEST = 16 << 20  # bytes: a table of numbers is never larger; a file that is has another format
TEXT = {"label", "order", "dtype", "quantization", "name", "kind", "version"}
SWITCHES = {"streaming"}
EITHER = {"grammar": (bool, str), "logprobs": (bool, int, float)}
CHOICES = {"order": ("first", "later"), "kind": ("gpu", "cpu"), "goal": tuple(goal.value for goal in Goal)}
NESTED = {"knobs"}

T = TypeVar("T", Group, TableModel, TableHardware)


def is_summary(head: bytes) -> bool:
    """Whether a file that begins so is a table: an object with the key `phasetrace`."""
    return "phasetrace" in outline(head)


def read_summary(source: Source) -> Table:
    """Read and check the whole table.

    Raises:
        TraceFormatError: it is no valid table; names the key and what it should be.
    """
    reader = _Reader(source.name)
    text = b"".join(source.lines())
    if len(text) > LARGEST:
        raise TraceFormatError(f"{source.name} is larger than a table of numbers can be ({LARGEST:,} bytes)")
    try:
        document = json.loads(text.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=reader.unique)
    except (ValueError, RecursionError) as error:
        raise reader.wrong("", f"is not JSON: {error}") from None
    return reader.table(reader.mapping(document, ""))


class _Reader:
    """Checks values and says where a wrong one stands: `groups[1].tpot_s`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def wrong(self, where: str, what: str) -> TraceFormatError:
        """The one line that says it."""
        return TraceFormatError(f"{self._name}: {where} {what}" if where else f"{self._name} {what}")

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object whose keys occur once: of two values, none can be believed."""
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise self.wrong(key, "appears twice in one object")
            found[key] = value
        return found

    def table(self, document: dict[str, Any]) -> Table:
        """The whole document."""
        self.known(document, "", ["phasetrace", "goal", "engine", "model", "hardware", "groups"])
        if document.get("phasetrace") != VERSION:
            raise self.wrong("phasetrace", f"must be {VERSION!r}, the one version there is")
        groups = document.get("groups")
        if not isinstance(groups, list) or not groups:
            raise self.wrong("groups", "must be a list of at least one group")
        engine = self.section(document, "engine", ["name", "version", "knobs"])
        goal = self.text(document.get("goal"), "goal")
        return Table(
            groups=tuple(self.record(Group, g, f"groups[{i}]") for i, g in enumerate(groups)),
            goal=Goal(goal) if goal else None,
            engine=self.text(engine.get("name"), "engine.name"),
            engine_version=self.text(engine.get("version"), "engine.version"),
            knobs=self.knobs(engine.get("knobs"), "engine.knobs") or {},
            model=self.record(TableModel, document.get("model") or {}, "model"),
            hardware=self.record(TableHardware, document.get("hardware") or {}, "hardware"),
        )

    def section(self, document: dict[str, Any], key: str, names: list[str]) -> dict[str, Any]:
        """An object inside the document, empty where it is absent."""
        value = document.get(key)
        found = {} if value is None else self.mapping(value, key)
        self.known(found, f"{key}.", names)
        return found

    def record(self, kind: type[T], value: Any, where: str) -> T:
        """A dataclass whose fields are the keys that are allowed."""
        found = self.mapping(value, where)
        names = [f.name for f in fields(kind)]
        self.known(found, f"{where}.", names)
        read = {name: self.value(name, found.get(name), f"{where}.{name}") for name in names}
        return kind(**read)

    def value(self, name: str, value: Any, where: str) -> Any:
        """One value by the kind that its name tells."""
        if value is None:
            return None
        if name in NESTED:
            return self.knobs(value, where)
        if name in TEXT:
            return self.text(value, where)
        if name in EITHER:
            if not isinstance(value, EITHER[name]):
                raise self.wrong(where, "must be true, false, or say which one")
            return value
        if name in SWITCHES:
            if not isinstance(value, bool):
                raise self.wrong(where, f"must be true, false or null, not {_shown(value)}")
            return value
        return self.number(value, where)

    def number(self, value: Any, where: str) -> float:
        """A finite number. Impossible ones (a negative time) are read: the diagnosis names them."""
        if not is_finite(value):
            raise self.wrong(where, f"must be a number or null, not {_shown(value)}")
        assert isinstance(value, int | float)
        return value

    def text(self, value: Any, where: str) -> str | None:
        """A string; one of a few where the format says so."""
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise self.wrong(where, f"must be a string or null, not {_shown(value)}")
        choices = CHOICES.get(where.rsplit(".", 1)[-1])
        if choices and value not in choices:
            raise self.wrong(where, f"must be one of {', '.join(choices)}, not {_shown(value)}")
        return value

    def knobs(self, value: Any, where: str) -> dict[str, Any] | None:
        """Settings of an engine, by the engine's own names; null ones are left out."""
        if value is None:
            return None
        found = self.mapping(value, where)
        for key, setting in found.items():
            if setting is not None and not isinstance(setting, bool | int | float | str):
                raise self.wrong(f"{where}.{key}", "must be a number, a string, true or false")
        return {key: setting for key, setting in found.items() if setting is not None}

    def mapping(self, value: Any, where: str) -> dict[str, Any]:
        """An object."""
        if not isinstance(value, dict):
            raise self.wrong(where or "it", f"must be an object, not {_shown(value)}")
        return value

    def known(self, found: dict[str, Any], where: str, names: list[str]) -> None:
        """Refuse the first key that the format does not have."""
        for key in found:
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise self.wrong(f"{where}{_plain(key)}", f"is no key of {VERSION}{hint}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _plain(key: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", key)[:60]
