"""What was found out about a file while it was read: what is broken, and what it holds at all."""

from __future__ import annotations

from collections import Counter

from phasetrace.model import Defect

_MOST_KINDS = 1000  # of names that are told apart; a name may hold an id
_SHOWN = 3
_LONGEST = 60  # characters of a name that is shown


class Notes:
    """Filled by a format's reader, told at the end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.documents = 0  # values of JSON, messages of protobuf
        self.cut = False  # the file ends in the middle of something
        self.damaged = 0  # spans that lack what every span has
        self.refused = ""  # why the first value was, in the parser's words
        self._broken = 0
        self._first_broken = 0
        self._said: dict[str, None] = {}
        self._names: Counter[str] = Counter()
        self._services: Counter[str] = Counter()

    def broken_line(self, number: int) -> None:
        """A line is not what the others are."""
        self._broken += 1
        self._first_broken = self._first_broken or number

    def refuse(self, reason: Exception) -> None:
        """A value is none, or of another shape than it should be."""
        self.refused = self.refused or str(reason)

    def say(self, sentence: str) -> None:
        """Something else to know about the file."""
        self._said[sentence] = None

    def spans(self, name: str, number: int = 1) -> None:
        """Spans of a name were met, whether they are of use or not."""
        if name in self._names or len(self._names) < _MOST_KINDS:
            self._names[name] += number
        else:
            self._names["others"] += number

    def service(self, name: object) -> None:
        """A service was met."""
        if len(self._services) < _MOST_KINDS:
            self._services[str(name)] += 1

    def defects(self) -> tuple[Defect, ...]:
        """A sentence for each thing that is wrong."""
        found = []
        if self.cut:
            found.append(f"the end of {self.name} is cut off: what was written last is missing")
        if self.damaged:
            found.append(f"{self.damaged:,} damaged spans of {self.name} were left out")
        if self._broken:
            found.append(
                f"{self._broken:,} lines of {self.name} are not JSON (the first is line {self._first_broken})"
            )
        return tuple(Defect(sentence) for sentence in (*found, *self._said))

    def holds(self) -> str:
        """What is in the file, for one in which nothing can be diagnosed."""
        total = sum(self._names.values())
        if not total:
            return "is cut off before its first span" if self.cut else "holds no span"
        damaged = f", {self.damaged:,} damaged spans" if self.damaged else ""
        names = ", ".join(_short(name) for name, _ in self._names.most_common(_SHOWN))
        services = ", ".join(_short(name) for name, _ in self._services.most_common(_SHOWN))
        of = f" of {services}" if services else ""
        return f"holds {total:,} spans{of} ({names}{', ...' if len(self._names) > _SHOWN else ''}){damaged}"


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
