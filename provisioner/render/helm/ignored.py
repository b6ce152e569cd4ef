"""The files of a chart that Helm leaves out, by the patterns of its .helmignore as Helm reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from provisioner.errors import BadBundle
from provisioner.render.helm.limits import MAX_IGNORE_PATTERN, MAX_IGNORE_PATTERNS

IGNORE = ".helmignore"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ALWAYS = "templates/.?*"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line: `parts` match a whole path, or where there is one and it `is_name`, a name in any folder."""

    parts: tuple[str, ...]
    is_name: bool
    is_for_folders: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        if self.is_for_folders and not is_folder:
            return False
        found = path.split("/")
        if self.is_name:
            return fnmatchcase(found[-1], self.parts[0])
        return len(found) == len(self.parts) and all(map(fnmatchcase, found, self.parts))


@dataclass(frozen=True, slots=True)
class IgnoredFiles:
    """The paths in a chart that are left out, by themselves or with a folder above them."""

    patterns: tuple[_Pattern, ...]

    @classmethod
    def of(cls, text: bytes) -> IgnoredFiles:
        """Raises BadBundle for patterns that Helm does not take, or whose meaning there nobody expects (`!`)."""
        lines = text.removeprefix(_BYTE_ORDER_MARK).decode(errors="replace").splitlines()
        rules = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
        if len(rules) > MAX_IGNORE_PATTERNS:
            raise BadBundle(f"{IGNORE}: it has {len(rules)} patterns; expected at most {MAX_IGNORE_PATTERNS}")
        for rule in rules:
            if len(rule) > MAX_IGNORE_PATTERN:
                raise BadBundle(
                    f"{IGNORE}: the pattern {rule[:100]!r}… has {len(rule)} characters;"
                    f" expected at most {MAX_IGNORE_PATTERN}"
                )
            if rule.startswith("!") or "**" in rule:
                raise BadBundle(f"{IGNORE}: the pattern {rule[:100]!r} is not supported; expected one without ! and **")
        return cls(tuple(_pattern(rule) for rule in (*rules, _ALWAYS)))

    def __contains__(self, path: str) -> bool:
        parts = path.split("/")
        steps = [("/".join(parts[:size]), size < len(parts)) for size in range(1, len(parts) + 1)]
        return any(one.matches(step, is_folder=is_folder) for one in self.patterns for step, is_folder in steps)


def _pattern(rule: str) -> _Pattern:
    is_for_folders = rule.endswith("/")
    rule = rule.removesuffix("/")
    try:
        parts = tuple(map(_as_fnmatch, rule.removeprefix("/").split("/")))
    except ValueError as exc:
        raise BadBundle(f"{IGNORE}: the pattern {rule[:100]!r} cannot be read: {exc}") from exc
    return _Pattern(parts, "/" not in rule, is_for_folders)


def _as_fnmatch(pattern: str) -> str:
    """A pattern of Go for one name, as Python writes it. Raises ValueError where Go could not read it."""
    found, rest = [], iter(pattern)
    for one in rest:
        if one == "[":
            found.append(_as_class(rest))
        elif one == "\\":
            escaped = next(rest, "")
            if not escaped:
                raise ValueError("nothing follows its last backslash")
            found.append(f"[{escaped}]" if escaped in "*?[" else escaped)
        else:
            found.append(one)
    return "".join(found)


def _as_class(rest: Iterator[str]) -> str:
    """What follows a `[`: characters and ranges of them, not those after `^`; a backslash stands before any."""
    items: list[str] = []
    is_negated, is_open = False, True
    for place, one in enumerate(rest):
        if one == "^" and place == 0:
            is_negated = True
        elif one == "]" and items:
            is_open = False
            break
        else:
            items.append(next(rest, "") if one == "\\" else one)
    if is_open or not all(items):
        raise ValueError("a [ has no ]")
    # Where Python takes a character for more than itself, it has to stand elsewhere.
    first = [one for one in items if one == "]"]
    last = [one for one in items if one == "!"]
    middle = [one for one in items if one not in "]!"]
    return f"[{'!' if is_negated else ''}{''.join([*first, *middle, *last])}]"
