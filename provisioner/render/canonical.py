"""The one form of an object and of a content: what is hashed, stored, shown and applied is these bytes.

Numbers are those that kubectl sends: 1.0 is 1, an integer past 64 bits a float (see scalars.number), so an object
written as YAML, as JSON or by Helm has one form. Text is never touched. Keys are sorted by code point.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

import orjson

from provisioner.errors import BundleTooLarge, InvalidManifest
from provisioner.render.scalars import number
from provisioner.values import Hook, HookMoment, Manifest

MAX_DEPTH = 200
_DOMAIN = b"pratique content v1"
# What may be a fraction, or an integer past 63 bits, of which there is another form.
_FRACTION = re.compile(rb"[0-9](?:\.[0-9]|[eE][-+0-9]|[0-9]{18})")
# Looking for fractions in longer texts takes longer than it saves.
_QUICK_BYTES = 16 * 1024
_SORTED = orjson.OPT_SORT_KEYS
_SORTED_LINE = _SORTED | orjson.OPT_APPEND_NEWLINE


def canonical(value: Any) -> Any:
    """A copy of a JSON value with sorted keys and settled numbers, which shares nothing with `value`.

    Raises InvalidManifest for what JSON cannot hold, and BundleTooLarge past MAX_DEPTH.
    """
    return _canonical(value, 0)


def _canonical(value: Any, depth: int) -> Any:
    if isinstance(value, str | bool) or value is None:
        return value
    if isinstance(value, int | float):
        return number(value)
    if depth >= MAX_DEPTH:
        raise BundleTooLarge(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        strangers = sorted({type(key).__name__ for key in value if not isinstance(key, str)})
        if strangers:
            raise InvalidManifest(f"a key is a {strangers[0]}, JSON keys are text")
        return {key: _canonical(value[key], depth + 1) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_canonical(member, depth + 1) for member in value]
    raise InvalidManifest(f"a {type(value).__name__} is no JSON value")


def canonical_json(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8. Equal values give equal bytes, everywhere."""
    if quick := _written_quickly(value):
        return quick
    text = json.dumps(_canonical(value, 0), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidManifest("a text holds half a surrogate pair, which UTF-8 cannot") from exc


def _written_quickly(value: Any) -> bytes:
    """The same by orjson, of what it writes in that form: b"" says nothing.

    It would write more than JSON knows (NaN as null, a UUID as text): what it has written has to be `value` again.
    """
    try:
        text = orjson.dumps(value, option=_SORTED)
        return text if len(text) <= _QUICK_BYTES and _is_plain(text) and orjson.loads(text) == value else b""
    except (orjson.JSONEncodeError, orjson.JSONDecodeError):
        return b""


def _is_plain(text: bytes) -> bool:
    """Whether it has nothing like a fraction in it and is nested no deeper than it has brackets."""
    return text.count(b"{") + text.count(b"[") <= MAX_DEPTH and not _FRACTION.search(text)


def serialise(manifests: Iterable[Manifest]) -> bytes:
    """The stored form of a content: a line of canonical JSON for each manifest, in their order, with its file.

    The line of a hook says when it runs.
    """
    written = BytesIO()  # b"".join would hold the lines as well, and a bundle may have 100 MB of them
    written.writelines(map(_line, manifests))
    return written.getvalue()


def _line(manifest: Manifest) -> bytes:
    entry = {"file": manifest.file, "object": manifest.body}
    if manifest.hook:
        moments = [str(moment) for moment in manifest.hook.moments]
        entry["hook"] = {"cleared": manifest.hook.is_cleared, "moments": moments, "weight": manifest.hook.weight}
    return canonical_json(entry) + b"\n"


def parse(stored: bytes) -> tuple[Manifest, ...]:
    """The manifests of a stored content; `serialise` of them gives the same bytes again.

    Raises InvalidManifest for bytes that `serialise` did not write. It checks the form only: hold `stored_digest`
    against the reviewed digest before you use the answer.
    """
    return tuple(_manifest(line, number) for number, line in enumerate(BytesIO(stored), start=1))


def _manifest(line: bytes, position: int) -> Manifest:
    try:
        entry, is_canonical = _parse_line(line)
        hook = None
        if "hook" in entry:
            record = entry["hook"]
            moments = [HookMoment(moment) for moment in record["moments"]]
            hook = Hook.at(moments, weight=record["weight"], is_cleared=record["cleared"])
        manifest = Manifest(entry["object"], entry["file"], hook)
        if is_canonical or _line(manifest) == line:
            return manifest
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise InvalidManifest(f"stored content, line {position}: not what was stored") from exc
    raise InvalidManifest(f"stored content, line {position}: not in canonical form")


def _parse_line(line: bytes) -> tuple[Any, bool]:
    """The value of a line, and whether that is all of it and written as it would be again: a no says nothing."""
    if _is_plain(line):
        try:
            entry = orjson.loads(line)
            if orjson.dumps(entry, option=_SORTED_LINE) == line:
                return entry, isinstance(entry, dict) and entry.keys() == {"file", "object"}
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # half a surrogate pair, a number past 64 bits
            pass
    return json.loads(line), False


def content_digest(
    manifests: Iterable[Manifest], *, install_namespace: str, service_account: str, salt: bytes = b""
) -> str:
    """`sha256:<hex>` over what will be applied (`Content.everything`), in its order, where to and as whom.

    With a `salt` it is an HMAC, on which nobody can try values who does not have the salt.
    """
    lines = [_line(manifest) for manifest in manifests]
    return _digest(lines, (install_namespace, service_account), salt)


def stored_digest(stored: bytes, *, install_namespace: str, service_account: str, salt: bytes = b"") -> str:
    """The content digest from stored bytes, without reading them: what apply compares before anything else."""
    return _digest([stored], (install_namespace, service_account), salt)


def _digest(stored: Sequence[bytes], place: tuple[str, str], salt: bytes) -> str:
    """Over the parts of `stored` as if they were one: every field of the digest is its length and its bytes."""
    digest = hmac.new(salt, digestmod=hashlib.sha256) if salt else hashlib.sha256()
    for field in (_DOMAIN, *(word.encode() for word in place)):
        digest.update(len(field).to_bytes(8, "big") + field)
    digest.update(sum(map(len, stored)).to_bytes(8, "big"))
    for part in stored:
        digest.update(part)
    return f"sha256:{digest.hexdigest()}"
