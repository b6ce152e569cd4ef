"""The files of a chart that Helm leaves out, by the patterns of its .helmignore as Helm reads them.

All paths are searched for all patterns at once, in RE2: one by one, 200 patterns and 20,000 files took minutes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from provisioner.errors import BadBundle, BundleTooLarge
from provisioner.regexes import BadRegularExpression, TooMuchWork, compiled
from provisioner.render.helm.limits import MAX_IGNORE_BYTES, MAX_IGNORE_PATHS, MAX_IGNORE_PATTERN, MAX_IGNORE_PATTERNS

IGNORE = ".helmignore"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ALWAYS = "templates/.?*"
_TOO_MUCH = f"{IGNORE}: its patterns and the paths of the chart are too long together; expected fewer or shorter ones"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line, in RE2, for a whole path, or where it `is_name`, for a name in any folder."""

    text: str
    is_name: bool
    is_for_folders: bool


def ignored_paths(text: bytes, paths: Collection[str]) -> set[str]:
    """Those of `paths` that are left out, by themselves or with a folder above them.

    Raises BadBundle for patterns that Helm does not take, or whose meaning there nobody expects (`!`), and
    BundleTooLarge where it is too much to search.
    """
    patterns = [_pattern_of(rule) for rule in (*_rules(text), _ALWAYS)]
    folders: set[str] = set()
    size = 0
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            size += len(folder)
            if size > MAX_IGNORE_PATHS:
                raise BundleTooLarge(_TOO_MUCH)
            folder = folder.rpartition("/")[0]
    left_out = _matching([pattern for pattern in patterns if not pattern.is_for_folders], paths)
    gone = _matching(patterns, folders)
    for folder in sorted(folders - gone, key=len):  # those above come first
        if folder.rpartition("/")[0] in gone:
            gone.add(folder)
    return {path for path in paths if path in left_out or path.rpartition("/")[0] in gone}


def _rules(text: bytes) -> list[str]:
    if len(text) > MAX_IGNORE_BYTES:
        raise BundleTooLarge(f"{IGNORE}: it has {len(text)} bytes; expected at most {MAX_IGNORE_BYTES}")
    lines = text.removeprefix(_BYTE_ORDER_MARK).decode(errors="replace").split("\n")
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
    return rules


def _matching(patterns: Iterable[_Pattern], paths: Collection[str]) -> set[str]:
    by_name = _found(
        [pattern.text for pattern in patterns if pattern.is_name], {path.rpartition("/")[2] for path in paths}
    )
    by_path = _found([one.text for one in patterns if not one.is_name], paths)
    return {path for path in paths if path in by_path or path.rpartition("/")[2] in by_name}


def _found(patterns: list[str], lines: Collection[str]) -> set[str]:
    """The lines that one of the patterns matches, in one search; no path holds a line break."""
    if not patterns:
        return set()
    try:
        program = compiled(f"(?m)^(?:{'|'.join(patterns)})$")
        return {found[0] for found in program.finditer("\n".join(lines))}
    except TooMuchWork as exc:
        raise BundleTooLarge(_TOO_MUCH) from exc
    except BadRegularExpression as exc:
        raise BadBundle(f"{IGNORE}: its patterns cannot be read: {exc}") from exc


def _pattern_of(rule: str) -> _Pattern:
    is_for_folders = rule.endswith("/")
    rule = rule.removesuffix("/")
    try:
        # A pattern of Go's filepath.Match. Raises ValueError where Go could not read it.
        pattern = rule.removeprefix("/")
        found, at = [], 0
        while at < len(pattern):
            char = pattern[at]
            at += 1
            if char == "[":
                ranges, at = _class_at(pattern, at)
                found.append(ranges)
            elif char == "\\":
                if at == len(pattern):
                    raise ValueError("nothing follows its last backslash")
                found.append(re.escape(pattern[at]))
                at += 1
            else:
                found.append({"*": r"[^/\n]*", "?": r"[^/\n]"}.get(char, re.escape(char)))
        return _Pattern("".join(found), "/" not in rule, is_for_folders)
    except ValueError as exc:
        raise BadBundle(f"{IGNORE}: the pattern {rule[:100]!r} cannot be read: {exc}") from exc


def _class_at(pattern: str, at: int) -> tuple[str, int]:
    """What follows a `[`, characters and ranges of them, none of these after `^`; and where it ends."""
    is_negated = pattern.startswith("^", at)
    at += is_negated
    ranges: list[str] = []
    count = 0
    while not count or not pattern.startswith("]", at):
        low, at = _character_at(pattern, at)
        high, at = _character_at(pattern, at + 1) if pattern.startswith("-", at) else (low, at)
        count += 1
        ranges += [f"{re.escape(low)}-{re.escape(high)}"] if low <= high else []
    if is_negated:
        return f"[^\\n{''.join(ranges)}]", at + 1
    return f"[{''.join(ranges)}]" if ranges else r"[^\x00-\x{10FFFF}]", at + 1


def _character_at(pattern: str, at: int) -> tuple[str, int]:
    """A character of a class, and where the next one is: a backslash stands before any; there has to be a next one."""
    if pattern[at : at + 1] in ("", "-", "]"):
        raise ValueError("a [ has no ], or a - or ] in it no backslash")
    at += pattern[at] == "\\"
    if at + 1 >= len(pattern):
        raise ValueError("a [ has no ]")
    return pattern[at], at + 1
