"""What a chart computes of a value of a Secret, which it never gets: found, so that nothing that is wrong is applied.

A chart is rendered with a mark in place of each value (`lookups`), and once more with a stand-in: another text with the
same punctuation. Where the stand-in is not simply in the place of the mark, the chart has computed something of it: a
hash, a part or an escaped form, or has decided by it, and nobody knows what it would have made of the value.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from provisioner.builtin.changes import dotted
from provisioner.errors import BadBundle, BundleTooLarge
from provisioner.escaping import visible
from provisioner.json_values import value_at
from provisioner.render.helm.checksums import is_checksum
from provisioner.render.objects import Found
from provisioner.render.scalars import resolve
from provisioner.render.targets import LookedUp
from provisioner.sentences import some
from provisioner.values import MadeSort, MadeUp

# Of another length than a mark, and sorted before it: a chart that counts or compares decides otherwise.
_LENGTH = 29
_LETTERS = "0QzVx7"
_ODD, _FIRST, _LAST = (re.compile(form) for form in ("[^A-Za-z0-9]+", r"\A[^A-Za-z0-9]+", r"[^A-Za-z0-9]+\Z"))
# Short enough that no text without an end is read again and again.
_ACTION = re.compile(r"\{\{[^{}]{1,500}\}\}")
_COMPARES = re.compile(r"\b(?:eq|ne|lt|le|gt|ge|contains|hasPrefix|hasSuffix|has|len|(?:mustR|r)egexMatch)\s")
# Whether there is a value is known: an empty one gets no mark.
_ASKS_WHETHER_EMPTY = re.compile(r'\b(?:eq|ne)\s+(?:""\s+[^\s()]+|[^\s()]+\s+"")')
_READS = re.compile(r"\.Values((?:\.\w{1,253})+)")
_VARIABLE = re.compile(r"\$\w{1,100}(?![\w.])")
MAX_COMPARISONS = 100
_SETS = re.compile(r"\{\{-?\s{0,20}(\$\w{1,100})\s{0,20}:?=")
_SUBCHART = re.compile(r"charts/([^/]{1,250})/")
# What it gives is another text each time, though it is made of a value, as a hash of a password is.
_ENCRYPTS = b"encryptAES"
_OWN_NAME = ("metadata", "name")
# As charts write a checksum, or the first digits of one, into a name.
_SUM = re.compile(r"(?<![0-9a-z])[0-9a-f]{6,64}(?![0-9a-z])")
_REMEDY = (
    "Put what the chart would compute into the Secret, too, and give it as a value of its own; what is no secret"
    " belongs into a ConfigMap (docs/operating/sources.md#values-from-secrets-and-configmaps)"
)


def stand_in(mark: str, value: bytes) -> str:
    """A text with the punctuation of `value`, and of its kind where YAML would not read it as a text; never the value.

    It tells a chart which punctuation the value has, and how long it is where that is more than a mark is.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if not isinstance(resolve("", text, is_plain=True), str):
        return "9" + "".join(str(int(digit, 16) % 10) for digit in mark[-12:])
    odd = list(dict.fromkeys(_ODD.findall(text)))
    first, last = (found[0] if (found := edge.search(text)) else "" for edge in (_FIRST, _LAST))
    # Each mark has its own, or one could take the place of another.
    filling = (_LETTERS + mark[-16:]).ljust(max(_LENGTH, len(text) if len(text) > len(mark) else 0), "k")
    return f"{first}{filling[:6]}{'k'.join(odd)}{filling[6:]}{last}"


def with_stand_ins(value: Any, texts: Mapping[str, str]) -> Any:
    """Values with stand-ins in place of marks, also where these are in base64, as in a Secret that is looked up."""
    if isinstance(value, Mapping):
        return {key: with_stand_ins(inner, texts) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_stand_ins(inner, texts) for inner in value]
    return texts.get(value, value) if isinstance(value, str) else value


def check_copied(
    known: Sequence[LookedUp],
    fill: Callable[[Sequence[LookedUp]], list[Found]],
    render_again: Callable[[Mapping[str, str]], list[Found]],
) -> None:
    """Raises BadBundle where the chart does anything with a value of a Secret but copy it.

    `fill` puts values in the place of marks; `render_again` renders with other texts in place of them, which are named
    in base64, too. Checksums in annotations, labels and names may be those of marks: they change with the value.
    """
    texts = {mark: stand_in(mark, value) for found in known for mark, value in found.marks.items()}
    secrets = some([str(ref) for ref in dict.fromkeys(found.ref for found in known if found.marks)], 3)
    copied = fill([replace(found, marks={m: texts[m].encode() for m in found.marks}) for found in known])
    coded = {_coded(mark): _coded(text) for mark, text in texts.items()}
    try:
        again = render_again(texts | coded)
    except BundleTooLarge:
        raise
    except BadBundle:
        # Without Helm's words, which may quote a text: its punctuation and length are those of the value.
        raise BadBundle(
            f"the chart: it gets a mark in place of each value of {secrets}. It cannot be rendered with a text of their"
            " length and punctuation (quotes, blanks, line breaks), or refuses such a text, so Helm would fail with the"
            f" values. Have its templates quote and indent what they read. {_REMEDY}"
        ) from None
    if [_SUM.sub("#", _name(found)) for found in copied] != [_SUM.sub("#", _name(found)) for found in again]:
        files = sorted({found.file for found in copied} ^ {found.file for found in again})
        raise BadBundle(
            f"the chart: {some(files) or 'it'} decides by a value of {secrets} which objects there are: by its length,"
            f" its letters or a comparison. It gets a mark in place of the value. {_REMEDY}"
        )
    # A name with a checksum, which makes another object for another value, and what names that object.
    renamed = {
        str(value_at(found.body, *_OWN_NAME)): str(value_at(other.body, *_OWN_NAME))
        for found, other in zip(copied, again, strict=True)
    }
    for found, other in zip(copied, again, strict=True):
        for path in _differing(found.body, other.body, renamed):
            raise BadBundle(
                f"the chart: {found.file} computes {visible(dotted(path)) or 'fields'} of {_name(found)} from a value"
                f" of {secrets}: a hash, a part, an escaped form, or a choice by it. It gets a mark in place of the"
                f" value, so this would be made of the mark. {_REMEDY}"
            )


def check_random(made_up: MadeUp, files: Mapping[str, bytes], known: Iterable[LookedUp]) -> None:
    """Raises BadBundle where the chart may hash or encrypt a value of a Secret with salt: no comparison shows that."""
    marked = [str(found.ref) for found in known if found.marks]
    encrypts = any(_ENCRYPTS in data for data in files.values())
    for made in made_up.values if marked else ():
        if encrypts or made.sort is MadeSort.HASH:
            place = made.place
            raise BadBundle(
                f"the chart: {visible(f'{place.path} of {place.kind} {place.name}')} is made anew each time, by"
                f" htpasswd, bcrypt or encryptAES, and may be made of a value of {some(marked, 3)}. The chart gets a"
                f" mark in place of the value, so it would be made of the mark. {_REMEDY}"
            )


def list_comparisons(files: Mapping[str, bytes], values: Any, marks: Collection[str]) -> tuple[str, ...]:
    """Where templates compare a value that is one of `marks` with something: file, line and the path of the value. The
    first MAX_COMPARISONS of them.

    As the templates are written: by the path of the value, or by a variable that an action of the file sets to it.
    """
    found: dict[str, None] = {}
    marked = {path for path, text in _texts(values, ()) if text in marks}
    for file, data in sorted(files.items()) if marked else ():
        if not file.endswith((".yaml", ".yml", ".tpl")) or "templates/" not in file:
            continue
        text, above = data.decode(errors="replace"), tuple(_SUBCHART.findall(file))
        actions = list(_ACTION.finditer(text))
        set_to: dict[str, dict[str, None]] = {}
        for action in actions:
            if sets := _SETS.match(action[0]):
                set_to.setdefault(sets[1], {}).update(dict.fromkeys(_paths_in(action[0], above, marked)))
        line, counted = 1, 0
        for action in actions:
            line, counted = line + text.count("\n", counted, action.start()), action.start()
            asked = _ASKS_WHETHER_EMPTY.sub("", action[0])
            if not _COMPARES.search(asked):
                continue
            by_name = (path for name in _VARIABLE.findall(asked) for path in set_to.get(name, ()))
            for path in chain(_paths_in(asked, above, marked), by_name):
                found[visible(f"{path} in {file}:{line}")] = None
                if len(found) == MAX_COMPARISONS:
                    return tuple(found)
    return tuple(found)


def _paths_in(action: str, above: tuple[str, ...], marked: Collection[tuple[str, ...]]) -> Iterator[str]:
    """The values that an action of a template reads and that are `marked`, by their paths there: a subchart, which lies
    in the charts `above`, has a part of the values for its own."""
    for dotted_path in _READS.findall(action):
        path = tuple(dotted_path.split(".")[1:])
        if path in marked or (path[0] != "global" and (*above, *path) in marked):
            yield ".".join(path)


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, (*path, str(key)))
    elif isinstance(value, str):
        yield path, value


def _differing(
    copied: Any, again: Any, renamed: Mapping[str, str], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """The paths at which two objects differ by more than a checksum, of base64 by what it is of."""
    if isinstance(copied, Mapping) and isinstance(again, Mapping):
        if copied.keys() != again.keys():
            yield path
            return
        for key, value in copied.items():
            yield from _differing(value, again[key], renamed, (*path, key))
    elif isinstance(copied, list) and isinstance(again, list) and len(copied) == len(again):
        for at, (value, other) in enumerate(zip(copied, again, strict=True)):
            yield from _differing(value, other, renamed, (*path, at))
    elif copied != again and (not isinstance(copied, str) or renamed.get(copied) != again):
        is_text = isinstance(copied, str) and isinstance(again, str)
        # Of base64 the blanks do not count; and a number that nobody quoted is the text that a Secret has to have.
        part = path[0] if path else ""
        one, other = ("".join(str(text).split()) if part == "data" else str(text) for text in (copied, again))
        if part in ("data", "stringData") and one == other:
            return
        is_word = len(path) > 1 and path[-2] in ("annotations", "labels")
        if not (is_text and is_word and is_checksum(str(path[-1]), copied, again, is_word=True)):
            yield path


def _name(found: Found) -> str:
    return visible(f"{value_at(found.body, 'kind')} {value_at(found.body, *_OWN_NAME)}")


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
