"""Reading the spec of an object, field by field: each is bounded, and what is wrong names its place. PURE."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")
MOST_ENTRIES = 50
LONGEST_TEXT = 253


class UnreadableObject(Exception):
    """A spec is not as its kind has it. The message names the `place`, what is there, and what was expected."""

    def __init__(self, words: str, place: str = ""):
        super().__init__(words)
        self.place = place


class SpecFields:
    """The fields of one mapping of a spec, at `place`; "" is the whole document. What nobody reads is refused by `end`:
    it may mean anything."""

    def __init__(self, found: object, place: str = "spec"):
        if not isinstance(found, Mapping):
            words = f"{place or 'the document'} is {_shown(found)}; expected an object with fields"
            raise UnreadableObject(words, place)
        self._found, self._place, self._read = found, place, set[str]()

    def text(self, name: str, *, default: str | None = None, longest: int = LONGEST_TEXT) -> str:
        """Raises where it is missing, unless there is a `default`."""
        found = self._take(name, default)
        if not isinstance(found, str) or len(found) > longest or "\0" in found:
            raise self._wrong(name, found, f"a text of at most {longest} characters")
        return found

    def moment(self, name: str, *, example: str) -> datetime:
        """A time that names its zone, in UTC."""
        text = self.text(name, longest=40)
        try:
            found = datetime.fromisoformat(text.upper())  # Kubernetes takes t and z as well
            if found.tzinfo is not None:
                return found.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise self._wrong(name, text, f"a time with its zone, such as {example}")

    def choice(self, name: str, allowed: Collection[str], *, default: str) -> str:
        found = self.text(name, default=default)
        if found not in {*allowed, default}:
            raise self._wrong(name, found, f"one of {', '.join(allowed)}")
        return found

    def flag(self, name: str) -> bool:
        """False where it is left out."""
        found = self._take(name, False)
        if not isinstance(found, bool):
            raise self._wrong(name, found, "true or false")
        return found

    def number(self, name: str, *, default: int, least: int, most: int) -> int:
        found = self._take(name, default)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise self._wrong(name, found, f"a whole number from {least} to {most}")
        return found

    def texts(self, name: str, *, allowed: Collection[str] = (), most: int = MOST_ENTRIES) -> tuple[str, ...]:
        found = self._take(name, [])
        if not isinstance(found, list) or len(found) > most:
            raise self._wrong(name, found, f"a list of at most {most} texts")
        for one in found:
            is_text = isinstance(one, str) and 0 < len(one) <= LONGEST_TEXT and "\0" not in one
            if not is_text or (allowed and one not in allowed):
                expected = (
                    f"one of {', '.join(allowed)}" if allowed else f"a text of 1 to {LONGEST_TEXT} characters, no NUL"
                )
                raise self._wrong(name, one, expected)
        return tuple(found)

    def labels(self, name: str) -> dict[str, str]:
        found = self._take(name, {})
        is_right = isinstance(found, Mapping) and all(isinstance(one, str) for pair in found.items() for one in pair)
        if not is_right or len(found) > MOST_ENTRIES:
            raise self._wrong(name, found, f"at most {MOST_ENTRIES} labels, texts by name")
        return dict(found)

    def inner(self, name: str) -> SpecFields:
        """The mapping of this name; an empty one where it is left out."""
        return SpecFields(self._take(name, {}), self._at(name))

    def each(self, name: str, read: Callable[[SpecFields], T], *, most: int) -> tuple[T, ...]:
        """What `read` makes of each mapping of a list."""
        found = self._take(name, [])
        if not isinstance(found, list) or len(found) > most:
            raise self._wrong(name, found, f"a list of at most {most} entries")
        return tuple(read(SpecFields(one, f"{self._at(name)}[{index}]")) for index, one in enumerate(found))

    def end(self) -> None:
        """Raise UnreadableObject for a field that this version of Pratique does not know."""
        if unknown := sorted(map(str, self._found.keys() - self._read)):
            where, name = self._place or "the document", _shown(unknown[0])
            words = f"{where} has the field {name}, which this version of Pratique does not know"
            raise UnreadableObject(words, self._at(unknown[0]))

    def refuse(self, name: str, words: str) -> UnreadableObject:
        return UnreadableObject(f"{self._at(name)} {words}", self._at(name))

    def _at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def _take(self, name: str, default: object) -> Any:
        self._read.add(name)
        found = self._found.get(name)
        return default if found is None else found

    def _wrong(self, name: str, found: object, expected: str) -> UnreadableObject:
        words = "is missing" if found is None else f"is {_shown(found)}"
        return self.refuse(name, f"{words}; expected {expected}")


def _shown(found: object) -> str:
    text = repr(found)
    return text if len(text) <= 60 else f"{text[:60]}…"
