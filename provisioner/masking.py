"""Values in plain objects that nobody should be shown: what is named like a credential, or written like one.

Values of Secrets are left out long before. This is about those that people write into arguments and variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HIDDEN = "hidden"
_WORD = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret(?:[_-]?key)?|token|(?:api|access|private|encryption|auth)[_-]?key"
    r"|client[_-]?key[_-]?data|credentials?)"
)
_CREDENTIAL = re.compile(rf"(?:^|[_.-]|(?<=[a-z])(?=[A-Z])){_WORD}$", re.IGNORECASE)
# `password=x`, `"token": "x"` and the like inside longer texts; what names a variable or a file is no value.
_INLINE = re.compile(
    rf"(?P<name>(?<![A-Za-z0-9])(?:[\w.-]{{0,60}}[_.-])?{_WORD}[\"']?\s*[=:]\s*)(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"',;&]+)",
    re.IGNORECASE,
)
_FLAG = re.compile(
    rf"(?P<name>(?<![\w-])--?(?:[\w.-]{{0,60}}[_.-])?{_WORD}\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"'-][^\s\"']*)",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(://[^/@\s:]*:)[^/@\s]+(?=@)")
# A token in the place of a user; a name stays.
_USER = re.compile(r"(?<=://)[^/@\s:]{8,}(?=(?::[^/@\s]*)?@)")
_AUTHORIZATION = re.compile(r"\b(Bearer|Basic)(\s+)[\w.~+/=-]{6,}", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
# What the way of an address holds: of one that calls a hook shorter parts are its key, too.
_ADDRESS = re.compile(r"\bhttps?://[^\s\"'<>]+", re.IGNORECASE)
_HOOK = re.compile(r"hook", re.IGNORECASE)
_PART = re.compile(r"(?<=[/?&=#:])[\w~-]{8,}")
_QUERY = re.compile(
    r"([?&#;][\w.~-]*(?:key|sig|signature|code|token|secret|pass|password|credential|auth)=)[^&#;]+", re.IGNORECASE
)
_RUN = re.compile(r"[A-Za-z\d]{16,}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# Commits and digests name what everybody may know.
_SUM = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORTEST_RANDOM = 20
_NO_VALUE = re.compile(r"|true|false|none|null|\$[({].*|/[\w./-]+", re.IGNORECASE)


def is_credential(name: str) -> bool:
    """Whether a value of this name is one that nobody should be shown."""
    return bool(_CREDENTIAL.search(name))


def masked_as(name: str, text: str) -> str:
    """A text that goes by a name, such as the value of a variable."""
    return HIDDEN if is_credential(name) and not _NO_VALUE.fullmatch(text.strip()) else masked(text)


def masked(text: str) -> str:
    """A text with the values hidden that are named or written like credentials."""
    name, equals, value = text.partition("=")
    if equals and is_credential(name.lstrip("-")) and not _NO_VALUE.fullmatch(value.strip()):
        return f"{name}={HIDDEN}"
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    if "://" in text:
        text = _USER.sub(lambda user: HIDDEN if _is_token(user[0]) else user[0], _USER_INFO.sub(rf"\1{HIDDEN}", text))
    text = _AUTHORIZATION.sub(rf"\1\2{HIDDEN}", text)
    text = _ADDRESS.sub(_without_keys, text) if "://" in text else text
    return _INLINE.sub(_hidden, _FLAG.sub(_hidden, text))


def masked_value(value: Any, name: str = "") -> Any:
    """The same of all texts in a value; what has a name and a value, as a variable has, by its name."""
    if isinstance(value, str):
        return masked_as(name, value)
    if isinstance(value, Mapping):
        own = value.get("name")
        named = {"value": own} if isinstance(own, str) else {}
        return {key: masked_value(inner, named.get(str(key), "")) for key, inner in value.items()}
    if isinstance(value, list):
        return [masked_value(inner) for inner in value]
    return value


def masked_states(before: Any, after: Any) -> tuple[Any, Any]:
    """Two states of a plain object with the values hidden that are named or written like credentials.

    Where such a value changes and both look the same, the state after says so.
    """
    old = _Masker()
    shown = old.of(before)
    return shown, _Masker(old.found).of(after)


CHANGED = f"{HIDDEN} values changed"
_Originals = dict[tuple[str, str], set[str]]


@dataclass(slots=True)
class _Masker:
    """Hides values of one state. `found` are the texts it hid by their names and by what is shown in their place."""

    before: _Originals = field(default_factory=dict)
    found: _Originals = field(default_factory=dict)

    def of(self, value: Any, name: str = "") -> Any:
        if isinstance(value, str):
            return self._mask_changed_text(value, masked_as(name, value), name)
        if isinstance(value, Mapping):
            own = value.get("name")
            named = {"value": own} if isinstance(own, str) else {}
            return {key: self.of(inner, named.get(str(key), str(key))) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._item(value, at, name) for at in range(len(value))]
        return value

    def _item(self, listed: list[Any], at: int, name: str) -> Any:
        """An argument that follows a flag is its value."""
        one, flag = listed[at], listed[at - 1] if at else None
        if not isinstance(one, str):
            return self.of(one)
        is_flag = isinstance(flag, str) and flag.startswith("-") and "=" not in flag and not one.startswith("-")
        key = str(flag).lstrip("-") if is_flag else ""
        return self._mask_changed_text(one, masked_as(key, one), key or name)

    def _mask_changed_text(self, text: str, shown: str, name: str) -> str:
        if shown == text:
            return text
        self.found.setdefault((name, shown), set()).add(text)
        known = self.before.get((name, shown))
        if known is None or text in known:
            return shown
        return f"{shown.rstrip()}\n({CHANGED})" if "\n" in shown else f"{shown} ({CHANGED})"


def _without_keys(found: re.Match[str]) -> str:
    """An address without the long random parts behind its host: whoever knows these may call it."""
    host, slash, way = found[0].partition("://")[2].partition("/")
    is_hook = bool(_HOOK.search(found[0]))

    def shown(part: re.Match[str]) -> str:
        is_random = len(part[0]) >= _SHORTEST_RANDOM and _is_random(part[0])
        is_key = (is_random and not _SUM.fullmatch(part[0])) or (is_hook and _is_key_of_hook(part[0]))
        return HIDDEN if is_key else part[0]

    way = _QUERY.sub(rf"\1{HIDDEN}", slash + way)
    return f"{found[0][: found[0].index('://') + 3]}{host}{_PART.sub(shown, way)}"


def _is_random(part: str) -> bool:
    """Letters and digits mixed, a UUID, or a code in both cases with marks between. Each character is looked at a few
    times: parts can be a megabyte long."""
    runs = _RUN.findall(part)
    is_mixed = any(any(map(str.isdigit, run)) and any(map(str.isalpha, run)) for run in runs)
    return (
        is_mixed
        or bool(_UUID.search(part))
        or all(any(map(of, part)) for of in (str.isdigit, str.islower, str.isupper))
    )


def _is_token(user: str) -> bool:
    return len(user) >= _SHORTEST_RANDOM or _is_key_of_hook(user)


def _is_key_of_hook(part: str) -> bool:
    has_lower, has_upper = any(map(str.islower, part)), any(map(str.isupper, part))
    return any(map(str.isdigit, part)) or (has_lower and has_upper) or (has_upper and part.isalpha())


def _hidden(found: re.Match[str]) -> str:
    return found[0] if _NO_VALUE.fullmatch(found["value"].strip("\"'")) else f"{found['name']}{HIDDEN}"
