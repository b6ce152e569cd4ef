"""What a chart made up, as two renderings of it show, and its objects with the values that count in place of it.

Each text that was another one the second time is built again from its parts, so that both renderings come to the same
objects, and whatever the chart did not make up can change from one version to the next, and is seen.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from provisioner.errors import BadBundle, BundleTooLarge
from provisioner.escaping import visible
from provisioner.json_values import mapping, pointer, value_at
from provisioner.render.canonical import canonical_json
from provisioner.render.helm.checksums import TextChange, compute_checksums, is_checksum, own_checksum
from provisioner.render.helm.lookups import MARK
from provisioner.render.helm.tokens import (
    MAX_CODINGS,
    SHORTEST_INSIDE,
    Coded,
    Part,
    Token,
    Unaligned,
    compare_texts,
    decoded,
    has_sides,
    is_pem,
    is_time,
    join,
    sort_of_pem,
    tokens_of,
)
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found
from provisioner.render.targets import BUILT_IN, LookedUp
from provisioner.sentences import number
from provisioner.values import Checksum, GroupKind, KeptValues, MadePlace, MadeSort, MadeUp, MadeValue, ObjectRef

MAX_MADE = 500
MAX_CHARACTERS = 4 * 2**20
# Characters that are looked through, counted once for each value.
MAX_SEARCHED = 2 * 10**9
# What is equal in both renderings is one value, unless it is so short that this may be chance.
_SHORTEST_SHARED = 4
_CODED = re.compile(r"[A-Za-z0-9+/]{12,}={0,2}")
# As htpasswd and bcrypt give it.
_SALTED = re.compile(r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}")
# A template by its path in the chart, wherever the chart lies.
_IN_CHART = re.compile(r"(?:charts/[^/]+/)*templates/.*")
_NAME = ("metadata", "name")
# The two parts of a Secret that hold its values.
_VALUES = ("data", "stringData")
_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class TwoRenderings:
    """The objects of those templates that came to others the second time; `sources` are the texts of these."""

    first: Sequence[Found]
    again: Sequence[Found]
    sources: Sequence[tuple[str, str]]
    namespace: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The objects of a chart with the values that count, what it made up, and its Secrets that have some of that."""

    objects: list[Found]
    values: tuple[MadeValue, ...]
    checksums: tuple[Checksum, ...]
    secrets: tuple[LookedUp, ...]

    @property
    def kept(self) -> dict[str, str]:
        """The values by the keys of all places that they went to."""
        return {place.key: made.value for made in self.values for place in made.places}

    def secrets_kept(self, kept: KeptValues) -> list[LookedUp]:
        """The Secrets without the keys whose values are new, and are not to be."""
        new = {
            (place.namespace, place.name, place.path)
            for made in self.values
            if made.place.key not in kept
            for place in made.places
        }
        found = []
        for secret in self.secrets:
            assert secret.answer is not None
            data = {
                key: value
                for key, value in secret.answer["data"].items()
                if not any((secret.ref.namespace, secret.ref.name, pointer((part, key))) in new for part in _VALUES)
            }
            found.append(replace(secret, answer={**secret.answer, "data": data}))
        return found


@dataclass(frozen=True, slots=True)
class MovingText:
    """A text, or a number, in the object `at` that was another one the second time; a checksum has no parts.

    `is_of_hook`: the object is a hook, which the next request may not have.
    """

    at: int
    path: _Path
    place: MadePlace
    first: Any
    again: Any
    is_of_hook: bool
    parts: tuple[Part, ...] = ()

    def tokens(self) -> Iterator[tuple[MadePlace, Token]]:
        for at, token in enumerate(tokens_of(self.parts)):
            yield replace(self.place, number=at), token


def settle(
    renderings: TwoRenderings,
    kept: KeptValues,
    meter: YamlMeter,
    *,
    is_offline: bool = False,
    earlier: Settled | None = None,
) -> Settled:
    """The first rendering with the `kept` values, and its own for what has none, or is to be made anew; a fixed text
    where `is_offline`.

    `earlier` is of renderings that had not looked up what they made. Raises Unaligned where the two differ by more than
    texts in the same places, or in others than earlier, or where a kept value is known by its number alone in a text
    that has another number of them now; and BundleTooLarge for too many of them.
    """
    first = renderings.first
    # What a chart looked up stays, and counts among the values of its text as it did before.
    constants = [Token(made.value, made.value) for made in earlier.values] if earlier else []
    moving, checksums = _compare_objects(renderings, constants)
    if earlier:
        _check_numbers(moving, earlier)
    kept = _with_whole_certificates(moving, kept, first)
    uncounted = set() if earlier else {text.place for text in moving if _has_other_number(text, kept)}
    values = _choose_values(moving, kept, uncounted, is_offline=is_offline)
    by_place = {place: made.value for made in values for place in made.places}
    changes: dict[int, dict[_Path, Any]] = defaultdict(dict)
    texts = []
    for text in moving:
        placed = [(token, by_place[place]) for place, token in text.tokens()]
        texts += [TextChange(token.first, token.again, value) for token, value in placed]
        settled = join(text.parts, [value for _, value in placed])
        meter.add(first[text.at].file, 0, len(settled))
        texts.append(TextChange(str(text.first), str(text.again), settled))
        changes[text.at][text.path] = settled if isinstance(text.first, str) else _number_of(settled)
    sums = {checksum.place: (checksum.first, checksum.again) for checksum in checksums}
    known = compute_checksums(sums, texts, renderings.sources)
    for checksum in checksums:
        changes[checksum.at][checksum.path] = known.get(checksum.place, "")
    objects = [replace(found, body=_changed(found.body, changes.get(at, {}))) for at, found in enumerate(first)]
    # Over all templates with made-up values, so that it changes whenever that of the chart would.
    files = {first[text.at].file for text in moving} or {found.file for found in first}
    basis = canonical_json([found.body for found in objects if found.file in files])
    own: dict[int, dict[_Path, str]] = defaultdict(dict)
    for checksum in checksums:
        if checksum.place not in known:
            own[checksum.at][checksum.path] = own_checksum(basis, len(checksum.first))
    for at, changed in own.items():
        objects[at] = replace(objects[at], body=_changed(objects[at].body, changed))
    secrets = [objects[at].body for at in sorted(changes) if _is_secret(objects[at].body)]
    return Settled(
        objects,
        values,
        tuple(Checksum(place, place in known) for place in sums),
        tuple(_as_looked_up(secret, renderings.namespace) for secret in secrets),
    )


def settle_otherwise(renderings: TwoRenderings, settled: Settled, meter: YamlMeter) -> Settled:
    """The same renderings with other values than those of `settled`, but for names. Raises Unaligned."""
    swapped = TwoRenderings(renderings.again, renderings.first, [], renderings.namespace)
    others = settle(swapped, {}, meter).kept
    names = {place.key for made in settled.values if made.sort is MadeSort.NAME for place in made.places}
    kept = {key: value if key in names else others.get(key, "") for key, value in settled.kept.items()}
    return settle(renderings, kept, meter)


def check_copies(looked_up: TwoRenderings, told: Settled, told_again: Settled, last: Settled) -> None:
    """Raises Unaligned where a chart shows anything of what it looked up but the values as they are, which are hidden,
    and checksums of its own Secrets.

    `looked_up` are its settled objects and texts, once with the values of `told` and once with those of `told_again`.
    """
    others = told_again.kept
    known = {Token(value, others[key]) for key, value in told.kept.items() if value != others[key]}
    placed = {replace(place, number=0) for each in (told, last) for made in each.values for place in made.places}
    computed = {checksum.place for checksum in last.checksums}
    long = [token for token in known if len(token.first) >= SHORTEST_INSIDE]
    texts = [TextChange(token.first, token.again, token.first) for token in long]
    checksums: dict[MadePlace, tuple[str, str]] = {}
    if len(looked_up.first) != len(looked_up.again):
        raise Unaligned
    bases = _base_places(looked_up.first, looked_up.namespace, ())
    for (base, _), one, other in zip(bases, looked_up.first, looked_up.again, strict=True):
        for path, named, value, changed in _differing(one.body, other.body):
            place = replace(base, path=pointer(named))
            text = MovingText(0, path, place, value, changed, is_of_hook=False)
            if _is_secret(one.body) and path[0] in _VALUES:
                texts.append(TextChange(str(value), str(changed), str(value)))
            elif place in computed:
                continue
            elif _is_checksum(one.body, text):
                checksums[place] = (value, changed)
            else:
                for token in tokens_of(_parts_of(one.body, text, known)):
                    if token not in known or (len(token.first) < SHORTEST_INSIDE and place not in placed):
                        raise Unaligned
    if len(compute_checksums(checksums, texts, looked_up.sources)) < len(checksums):
        raise Unaligned


def list_made_up(objects: Sequence[Found], namespace: str, settled: Iterable[Settled]) -> MadeUp:
    """What is in these objects of all that was made up, each value with all places that it went to.

    Raises BundleTooLarge where that cannot be looked through.
    """
    values: dict[MadePlace, MadeValue] = {}
    owners: dict[MadePlace, MadePlace] = {}
    checksums: dict[MadePlace, bool] = {}
    placed: set[MadePlace] = set()
    for each in settled:
        # What the last rendering no longer has to compute, Helm computed from the values that count.
        checksums = dict.fromkeys(checksums, True) | {checksum.place: checksum.is_known for checksum in each.checksums}
        shared = {made.value for made in values.values() if len(made.value) >= SHORTEST_INSIDE}
        for made in each.values:
            if made.place not in owners and made.value not in shared:
                values[made.place] = made
                owners |= dict.fromkeys((made.place, *made.copies), made.place)
        # What the last one put into place is there; what an earlier one made may be no longer.
        placed = {owners.get(made.place, made.place) for made in each.values}
    unnamed = {place.path.removesuffix("/metadata/name") for place in values if not place.name}
    texts = {
        replace(place, path=prefix + pointer(path)): "\0".join(_readings(text))
        for found, (place, prefix) in zip(objects, _base_places(objects, namespace, unnamed), strict=True)
        for path, text in _texts(found.body, ())
    }
    whole, places = "\0\0".join(texts.values()), list(texts)
    if len(whole) * len(values) > MAX_SEARCHED:
        raise BundleTooLarge(
            f"the chart makes up {number(len(values), 'value')}, too many for its {len(whole):,} characters"
        )
    starts = list(accumulate((len(text) + 2 for text in texts.values()), initial=0))
    listed = []
    for made in values.values():
        if made.place not in placed and made.value not in texts.get(replace(made.place, number=0), ""):
            continue
        copies = [place for place in made.copies if made.value in texts.get(replace(place, number=0), "")]
        seen = {replace(place, number=0) for place in (made.place, *copies)}
        position = whole.find(made.value) if len(made.value) >= SHORTEST_INSIDE else -1
        while position >= 0:
            index = bisect_right(starts, position) - 1
            if places[index] not in seen:
                copies.append(places[index])
            position = whole.find(made.value, starts[index + 1])
        listed.append(replace(made, copies=tuple(sorted(copies))))
    standing = [Checksum(place, is_known) for place, is_known in sorted(checksums.items()) if place in texts]
    return MadeUp(tuple(sorted(listed, key=lambda made: made.place)), tuple(standing))


def _compare_objects(
    renderings: TwoRenderings, constants: Collection[Token]
) -> tuple[list[MovingText], list[MovingText]]:
    """The texts with made-up values, and the checksums. Short ones come first: a password before the URL with it."""
    first, again = renderings.first, renderings.again
    if [(found.file, found.hook) for found in first] != [(found.file, found.hook) for found in again]:
        raise Unaligned
    placed = zip(first, again, _positions(first), strict=True)
    unnamed = {
        position for one, other, position in placed if value_at(one.body, *_NAME) != value_at(other.body, *_NAME)
    }
    found: list[MovingText] = []
    checksums: list[MovingText] = []
    size = 0
    for at, (place, prefix) in enumerate(_base_places(first, renderings.namespace, unnamed)):
        for path, named, value, other in _differing(first[at].body, again[at].body):
            its = replace(place, path=prefix + pointer(named))
            text = MovingText(at, path, its, value, other, first[at].hook is not None)
            size += len(str(value))
            if size > MAX_CHARACTERS:
                raise BundleTooLarge(f"the chart makes up more than {MAX_CHARACTERS // 2**20} MiB of texts")
            (checksums if _is_checksum(first[at].body, text) else found).append(text)
    if len({text.place for text in (*found, *checksums)}) < len(found) + len(checksums):
        # Kinds of one name in two groups, with objects of one name: their values would be taken for each other.
        raise Unaligned
    if len(checksums) > MAX_MADE:
        raise BundleTooLarge(f"the chart makes more than {MAX_MADE} checksums over what it makes up")
    known = dict.fromkeys(constants)
    compared = []
    for text in sorted(found, key=lambda text: (_length(first[text.at].body, text), text.place)):
        compared.append(replace(text, parts=_parts_of(first[text.at].body, text, known)))
        tokens = list(tokens_of(compared[-1].parts))
        if any(MARK in token.first for token in tokens):
            where = visible(f"{text.place.path} of {text.place.kind} {text.place.name}")
            raise BadBundle(
                f"the chart joins what it makes up and a value of a Secret of the cluster into one word, in {where}, "
                "which could not be put together again when that value changes; give it both in one value"
            )
        known |= dict.fromkeys(tokens)
        if len(known) - len(constants) > MAX_MADE:
            raise BundleTooLarge(f"the chart makes up more than {MAX_MADE} values")
    return compared, checksums


def _check_numbers(moving: Iterable[MovingText], earlier: Settled) -> None:
    """Raises Unaligned where a text has not as many values as earlier, so that they would be taken for each other."""
    before = Counter(replace(place, number=0) for made in earlier.values for place in made.places)
    for text in moving:
        if before[text.place] not in (0, len(list(text.tokens()))):
            raise Unaligned


def _has_other_number(text: MovingText, kept: KeptValues) -> bool:
    """Whether more or fewer values were kept of a text than it has now, so that their numbers tell nothing."""
    known = [place.key in kept for place, _ in text.tokens()]
    return replace(text.place, number=len(known)).key in kept or (any(known) and not known[-1])


def _with_whole_certificates(moving: Iterable[MovingText], kept: KeptValues, first: Sequence[Found]) -> dict[str, str]:
    """The kept values without all keys and certificates of each template that makes one of its own anew: a certificate
    fits only the authority that it was made with."""
    of_files: dict[str, set[str]] = defaultdict(set)
    for text in moving:
        for place, token in text.tokens():
            if is_pem(token.first) and place.key in kept:
                of_files[first[text.at].file].add(place.key)
    anew = [key for keys in of_files.values() if not all(kept[key] for key in keys) for key in keys]
    return {**kept, **dict.fromkeys(anew, "")}


def _differing(first: Any, again: Any, path: _Path = (), named: _Path = ()) -> Iterator[tuple[_Path, _Path, Any, Any]]:
    """What differs: its path, the same with entries of lists by their names, and both sides."""
    if isinstance(first, Mapping) and isinstance(again, Mapping) and first.keys() == again.keys():
        for key, value in first.items():
            yield from _differing(value, again[key], (*path, key), (*named, key))
    elif isinstance(first, list) and isinstance(again, list) and len(first) == len(again):
        steps = zip(_entry_steps(first), _entry_steps(again), strict=True)
        for at, (step, step_again) in enumerate(steps):
            its = step if step == step_again else at
            yield from _differing(first[at], again[at], (*path, at), (*named, its))
    elif first != again or type(first) is not type(again):
        if not ((isinstance(first, str) and isinstance(again, str)) or {type(first), type(again)} <= {int, float}):
            raise Unaligned
        yield path, named, first, again


def _parts_of(body: Any, text: MovingText, known: Collection[Token]) -> tuple[Part, ...]:
    if not isinstance(text.first, str):
        return (Token(json.dumps(text.first), json.dumps(text.again)),)
    if not (_is_secret(body) and text.path[0] in _VALUES):
        return compare_texts(text.first, text.again, known)
    if text.path[0] == "stringData":
        return compare_texts(text.first, text.again, known, is_whole=True)
    coded = text.first.strip()
    before, _, after = text.first.partition(coded)
    inner, inner_again = decoded(coded), decoded(text.again.strip())
    if inner is None or inner_again is None:
        return (Token(text.first, text.again),)
    parts = (before, Coded(compare_texts(inner, inner_again, known, is_whole=True)), after)
    if not has_sides(parts, text.first, text.again):
        raise Unaligned
    return parts


def _length(body: Any, text: MovingText) -> int:
    """How many characters a text has, in a Secret those that are encoded."""
    inner = decoded(str(text.first).strip()) if _is_secret(body) and text.path[0] == "data" else None
    return len(str(text.first) if inner is None else inner)


def _is_checksum(body: Any, text: MovingText) -> bool:
    if not isinstance(text.first, str) or (_is_secret(body) and text.path[0] in _VALUES):
        return False
    above: Any = body
    for step in text.path[:-1]:
        above = above[step]
    # Of a variable, the name stands beside its value.
    name = mapping(above).get("name") if text.path[-1] == "value" else text.path[-1]
    return is_checksum(str(name), text.first, text.again, is_word=text.path[-2:-1] in (("annotations",), ("labels",)))


def _choose_values(
    moving: Iterable[MovingText], kept: KeptValues, uncounted: Collection[MadePlace], *, is_offline: bool
) -> tuple[MadeValue, ...]:
    groups: dict[Token | MadePlace, list[tuple[MadePlace, Token, MovingText]]] = defaultdict(list)
    for text in moving:
        for place, token in text.tokens():
            is_shared = min(len(token.first), len(token.again)) >= _SHORTEST_SHARED
            groups[token if is_shared else place].append((place, token, text))
    if len(groups) > MAX_MADE:
        raise BundleTooLarge(f"the chart makes up more than {MAX_MADE} values")
    values = []
    for members in groups.values():
        members.sort(key=_likeliness)
        _, token, text = members[0]
        places = [place for place, *_ in members]
        # A value that was kept is found by any of its places, since the first one may be another one in this version.
        known = [place for place in places if place.key in kept]
        counted = [place for place in known if replace(place, number=0) not in uncounted]
        if known and not counted:
            where = visible(f"{known[0].path} of {known[0].kind} {known[0].name}")
            raise BadBundle(
                f"the chart makes up another number of values in {where} than before, so nobody can tell which of them"
                " are those that were kept; give the chart the values that are in use in spec.config.values"
            )
        place = (counted or places)[0]
        value = token.first
        if is_kept := bool(kept.get(place.key)):
            value = kept[place.key]
        elif is_offline:
            value = f"made-up-{place.key[:8]}" if isinstance(text.first, str) else "1"
        copies = tuple(sorted(set(places) - {place}))
        is_rotated = place.key in kept and not is_kept
        values.append(MadeValue(place, value, _sort_of(token, place), copies, place.key not in kept, is_rotated))
    return tuple(values)


def _likeliness(member: tuple[MadePlace, Token, MovingText]) -> tuple[object, ...]:
    """Places of a value in the order in which later versions will have them: first those alone in a Secret."""
    place, _, text = member
    return text.is_of_hook, place.kind != "Secret", len(str(text.first)), place


def _sort_of(token: Token, place: MadePlace) -> MadeSort:
    if is_pem(token.first):
        return sort_of_pem(token.first)
    if place.path.endswith("/metadata/name"):
        return MadeSort.NAME
    if is_time(token):
        return MadeSort.TIME
    if _SALTED.search(token.first):
        return MadeSort.HASH
    is_secret = place.kind == "Secret" and re.search("(?:^|#[0-9]+)/(?:data|stringData)/", place.path)
    return MadeSort.PASSWORD if is_secret else MadeSort.TEXT


def _as_looked_up(secret: Mapping[str, Any], namespace: str) -> LookedUp:
    """A Secret as `lookup` finds it once it is applied."""
    metadata = dict(mapping(secret.get("metadata")))
    metadata["namespace"] = metadata.get("namespace") or namespace
    texts = {key: b64encode(str(text).encode()).decode() for key, text in mapping(secret.get("stringData")).items()}
    body = {key: value for key, value in secret.items() if key != "stringData"}
    body |= {"metadata": metadata, "data": {**mapping(secret.get("data")), **texts}}
    return LookedUp(ObjectRef("", "v1", "Secret", str(metadata["namespace"]), str(metadata.get("name"))), body)


def _base_places(objects: Sequence[Found], namespace: str, unnamed: Collection[str]) -> Iterator[tuple[MadePlace, str]]:
    """The place of each object, and what its paths begin with; `unnamed` are those whose names are made up."""
    for found, position in zip(objects, _positions(objects), strict=True):
        metadata = mapping(value_at(found.body, "metadata"))
        group, _, _ = str(value_at(found.body, "apiVersion")).rpartition("/")
        kind = str(value_at(found.body, "kind"))
        own = "" if BUILT_IN.get(GroupKind(group, kind)) is False else str(metadata.get("namespace") or namespace)
        is_named = position not in unnamed
        yield MadePlace(kind, own, str(metadata.get("name")) if is_named else "", ""), "" if is_named else position


def _positions(objects: Iterable[Found]) -> list[str]:
    counted: Counter[str] = Counter()
    positions = []
    for found in objects:
        path = _IN_CHART.search(found.file)
        file = path[0] if path else found.file
        positions.append(f"{file}#{counted[file]}")
        counted[file] += 1
    return positions


def _texts(value: Any, path: _Path) -> Iterator[tuple[_Path, str]]:
    """Each text with its path, entries of lists by their names."""
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from _texts(member, (*path, key))
    elif isinstance(value, list):
        for step, member in zip(_entry_steps(value), value, strict=True):
            yield from _texts(member, (*path, step))
    elif value is not None:
        yield path, value if isinstance(value, str) else json.dumps(value)


def _entry_steps(entries: list[Any]) -> list[str | int]:
    """What leads to each entry: its name where no other one has it, so that one that is put before it moves no value
    into another entry; else its number."""
    names = [value_at(entry, "name") for entry in entries]
    counted = Counter(name for name in names if isinstance(name, str))
    return [f"[name={name}]" if isinstance(name, str) and counted[name] == 1 else at for at, name in enumerate(names)]


def _readings(text: str, codings: int = 0) -> Iterator[str]:
    """A text, and what is base64 in it, all of it or words."""
    yield text
    if codings < MAX_CODINGS:
        for word in dict.fromkeys((text.strip(), *_CODED.findall(text))):
            if inner := decoded(word):
                yield from _readings(inner, codings + 1)


def _changed(value: Any, changes: Mapping[_Path, Any], path: _Path = ()) -> Any:
    """The value with others at these paths; it shares what stays."""
    if path in changes:
        return changes[path]
    if not changes:
        return value
    if isinstance(value, Mapping):
        return {key: _changed(member, changes, (*path, key)) for key, member in value.items()}
    if isinstance(value, list):
        return [_changed(member, changes, (*path, at)) for at, member in enumerate(value)]
    return value


def _number_of(text: str) -> Any:
    """Raises Unaligned for no number: it was kept where the chart had a text."""
    try:
        value = json.loads(text)
    except ValueError:
        raise Unaligned from None
    if type(value) not in (int, float):
        raise Unaligned
    return value


def _is_secret(body: Any) -> bool:
    return (value_at(body, "apiVersion"), value_at(body, "kind")) == ("v1", "Secret")
