"""Who wrote which part of a Catalog's source. PURE.

What its Secret opens, and where it is sent, stands in several parts, which different people may have written: each of
them must be allowed to get the Secret (S05, S08).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Record = Mapping[str, Any]


def parts_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """What the spec says of its source, by path, such as `image.ref` and `image.auth.secret.name`; nothing of what it
    leaves empty."""
    said = {"format": spec.get("format"), **(spec.get("source") or {})}
    return {path: text for path, text in _leaves(said, "") if text}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, "" if value is None else str(value)


def written(authors: Iterable[Record], spec: Mapping[str, Any], writer: Record | None) -> list[dict[str, Any]]:
    """The authors of `spec` once `writer` has made it of what `authors` wrote; None where nobody can tell who did.

    Each is of one part: {part, value, writer}. A part that was taken out is of whoever did that, as long as the kind of
    the source is the same. Whoever writes again has their groups proved anew.
    """
    said, known = parts_of(spec), {str(one["part"]): one for one in authors}
    found = []
    for part in sorted({*said, *known}):
        value, one = said.get(part, ""), known.get(part)
        if one is not None and one["value"] == value:
            is_theirs = bool(writer) and _who(one["writer"]) == _who(writer or {})
            found.append(
                {"part": part, "value": value, "writer": dict(writer if writer and is_theirs else one["writer"])}
            )
        elif value or part.partition(".")[0] in ("format", said.get("kind")):
            found.append({"part": part, "value": value, "writer": dict(writer or {})})
    return found


def authors_by_part(authors: Iterable[Record], spec: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Who wrote each part of the source as the spec has it; None where of any part nobody can tell."""
    known = [dict(one) for one in authors]
    written_as = {one["part"]: one["value"] for one in known if one["value"]}
    if written_as != parts_of(spec) or not all(one["writer"] for one in known):
        return None
    return {one["part"]: dict(one["writer"]) for one in known}


def _who(writer: Record) -> tuple[Any, ...]:
    return tuple(writer.get(name) for name in ("username", "uid", "user_id", "issuer", "subject"))
