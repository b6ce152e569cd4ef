"""Changes of built-in objects, the real API server's answer to each, and ours without a cluster."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from provisioner.cluster.client.api import MUST_NOT_EXIST, ClusterClient
from provisioner.errors import ClusterError, TryLater
from provisioner.pipeline import look_offline
from provisioner.render import BUILT_IN
from provisioner.values import GroupKind, ObjectRef, Severity
from tests.provisioner.builtin.asking import SPECIMENS
from tests.support.provisioner.contents import content_of as folder_content
from tests.support.provisioner.contents import content_with
from tests.support.provisioner.corpus import content_of, pairs

Object = dict[str, Any]
CASES = Path(__file__).parents[1] / "review/cases"
PAIRS = Path(__file__).parent / "pairs.yaml"
RARE_PAIRS = Path(__file__).parent / "rare_pairs.yaml"
MANAGER = "differential"
WORKERS = 8
MOST_OF_KIND = 40
# The findings that say: the API server refuses this.
REFUSING = frozenset({"IMM-01", "OBJ-07", "OBJ-10", "SEC-03", "WH-06", "RB-46"})
# Those that say: whether it does is not known.
UNKNOWING = frozenset({"OBJ-03", "OBJ-04", "OBJ-11", "API-01", "API-02", "CRASHED"})
# Created for good, these would stand in everybody's way; they are only tried.
_TRIED_ONLY = frozenset(
    [
        "APIService",
        "FlowSchema",
        "MutatingWebhookConfiguration",
        "PriorityLevelConfiguration",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "Namespace",
    ]
)
# What the server says of its surroundings, not of the object.
_OF_SURROUNDINGS = (
    "already allocated", "is not in the valid range", "no PriorityClass", "serviceaccount ", "RuntimeClass", "exceeded quota", "object has been modified", "owns .",
    "globalDefault", "not found in", "NamespaceLifecycle", "violates PodSecurity", "namespaces \"",
)  # fmt: skip


class Answer(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Change:
    """`old` is None for a new object."""

    name: str
    old: Object | None
    new: Object


@dataclass(frozen=True, slots=True)
class Compared:
    change: Change
    real: Answer
    ours: Answer
    our_words: str
    real_words: str


def changes(namespace: str, seed: int, at_most: int) -> list[Change]:
    """Those written by hand, and `at_most` others: of real bundles, as they are and with something changed."""
    draw = random.Random(seed)
    found = [*_written(), *_specimens(), *_of_cases()]
    found += list(_of_corpus(draw, at_most - len(found)))
    return [_placed(one, number, namespace) for number, one in enumerate(found)]


def _written() -> Iterator[Change]:
    for file in (PAIRS, RARE_PAIRS):
        for one in yaml.load(file.read_text(), Loader=yaml.CSafeLoader):
            yield Change(one["name"], one.get("old"), one["new"])


def _specimens() -> Iterator[Change]:
    for one in yaml.load(SPECIMENS.read_text(), Loader=yaml.CSafeLoader):
        yield Change(f"specimen {one['kind']} {one['metadata']['name']}", None, one)


def _of_cases() -> Iterator[Change]:
    """Objects of the cases of reports, of which the findings say whether they are refused."""
    for case in sorted(CASES.iterdir()):
        sides = [_read(case / side) for side in ("old", "new")]
        for key, new in sides[1].items():
            if _is_of_kubernetes(GroupKind(key[0], key[2])):
                yield Change(f"case {case.name} {key[2]} {key[4]}", sides[0].get(key), new)


def _is_of_kubernetes(kind: GroupKind) -> bool:
    return kind in BUILT_IN and kind.kind != "CustomResourceDefinition" and not kind.group.startswith("core.")


def _read(folder: Path) -> dict[tuple[str, ...], Object]:
    content = folder_content(folder)
    return {
        (one.ref.group, one.ref.version, one.ref.kind, one.ref.namespace, one.ref.name): dict(one.body)
        for one in (content.manifests if content else ())
    }


def _of_corpus(draw: random.Random, count: int) -> Iterator[Change]:
    """A third each: new objects, their real next versions, and objects with something changed."""
    objects: dict[tuple[str, str], list[tuple[Object | None, Object]]] = {}
    for old, new in pairs():
        before = {one.ref.identity: dict(one.body) for one in content_of(old).manifests}
        for one in content_of(new).manifests:
            ref = one.ref
            if _is_of_kubernetes(ref.group_kind):
                objects.setdefault((ref.kind, ref.group), []).append((before.get(ref.identity), dict(one.body)))
    # Rare kinds often, but not the same object again and again.
    kinds = [kind for kind in sorted(objects) for _ in range(min(len(objects[kind]), MOST_OF_KIND))]
    for number in range(count):
        kind = draw.choice(kinds)
        old, new = draw.choice(objects[kind])
        way = draw.choice(("new", "next", "broken new", "broken next"))
        if way == "next" and old is not None:
            yield Change(f"{way} {kind[0]} {number}", old, new)
        elif way == "broken next":
            yield Change(f"{way} {kind[0]} {number}", new, broken(new, draw))
        else:
            yield Change(f"{way} {kind[0]} {number}", None, new if way == "new" else broken(new, draw))


_TEXTS = (
    "",
    "Not/A_name!",
    "a",
    "None",
    "10.0.0.1",
    "1Gi",
    "-",
    "x" * 300,
    "99999",
    "true",
    "http",
    "Always",
    "0 0 * * *",
)
_NUMBERS = (-1, 0, 1, 2, 65535, 65536, 2**31, 3)


def broken(obj: Object, draw: random.Random) -> Object:
    """`obj` with one thing changed somewhere: a value, a field more or less, an item twice, a wrong type."""
    made = copy.deepcopy(obj)
    places = [(path, key) for path, key in _places(made, ()) if not _is_name(path, key)]
    if not places:
        return {**made, "surplus": 1}
    path, key = draw.choice(places)
    holder: Any = made
    for step in path:
        holder = holder[step]
    others = list(holder.values()) if isinstance(holder, dict) else holder
    holder[key] = draw.choice((_with_other_value, _with_other_value, _with_more, _with_other_kind))(holder[key], draw)
    if draw.random() < 0.25:
        holder[key] = draw.choice((None, copy.deepcopy(draw.choice(others))))
    elif draw.random() < 0.15 and isinstance(holder, dict):
        del holder[key]
    return made


def _with_other_value(value: Any, draw: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice(_NUMBERS)
    if isinstance(value, str):
        return draw.choice((*_TEXTS, f"{value}x", value.upper(), f" {value}"))
    return _with_more(value, draw)


def _with_more(value: Any, draw: random.Random) -> Any:
    if value is None:
        return "text"
    if isinstance(value, list):
        return [*value, *copy.deepcopy(value[:1])]
    return {**value, "surplus": "1"} if isinstance(value, dict) else _with_other_value(value, draw)


def _with_other_kind(_: Any, draw: random.Random) -> Any:
    return draw.choice(([], {}, "text", 7, True, [{}], {"a": "b"}))


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield path, key
        yield from _places(value[key], (*path, key))


def _is_name(path: tuple[Any, ...], key: Any) -> bool:
    """What makes it this object: changed, nobody could compare."""
    return (not path and key in ("apiVersion", "kind", "metadata")) or (
        path == ("metadata",) and key in ("name", "namespace")
    )


def _placed(change: Change, number: int, namespace: str) -> Change:
    """Under a name of its own in the namespace of the test, without pods that would run."""
    sides = [copy.deepcopy(one) if one is not None else None for one in (change.old, change.new)]
    for one in sides:
        if one is None or not isinstance(one.get("metadata"), dict):
            continue
        meta = one["metadata"]
        if BUILT_IN.get(GroupKind(str(one.get("apiVersion", "")).rpartition("/")[0], one.get("kind", "")), True):
            meta["namespace"] = namespace
        if one.get("kind") != "APIService":
            meta["name"] = f"d{number}-{meta.get('name', '')}"[:63].rstrip("-.")
        spec = one.get("spec")
        runs = one.get("kind") in ("Deployment", "StatefulSet", "ReplicaSet") and change.old is not None
        if runs and isinstance(spec, dict) and "replicas" not in spec:
            spec["replicas"] = 0
    return Change(change.name, sides[0], sides[1] or {})


def compared(cluster: ClusterClient, found: Iterable[Change]) -> list[Compared]:
    """Both answers to each change, without those that the server's surroundings decide."""
    with ThreadPoolExecutor(WORKERS) as pool:
        answers = list(pool.map(lambda one: _asked(cluster, one), found))
    kept = [one for one in answers if not (one[1] is Answer.REFUSED and any(it in one[2] for it in _OF_SURROUNDINGS))]
    return [Compared(change, real, *_ours(change), words) for change, real, words in kept]


def _asked(cluster: ClusterClient, change: Change) -> tuple[Change, Answer, str]:
    """The change as it was tried: a new object where the old one cannot be made."""
    old = change.old if change.new.get("kind") not in _TRIED_ONLY else None
    uid = ""
    if old is not None:
        try:
            uid = str(cluster.apply(old, field_manager=MANAGER).object["metadata"]["uid"])
        except ClusterError:
            old = None
    sent = copy.deepcopy(change.new)
    if isinstance(sent.get("metadata"), dict):
        sent["metadata"].update({"uid": uid} if uid else {"resourceVersion": MUST_NOT_EXIST})
    tried = Change(change.name, old, change.new)
    try:
        cluster.apply(sent, field_manager=MANAGER, dry_run=True)
    except TryLater:
        raise
    except ClusterError as exc:
        return tried, Answer.REFUSED, exc.server_words or str(exc)
    finally:
        if uid:
            cluster.delete(ObjectRef.of(change.new))
    return tried, Answer.ACCEPTED, ""


def _ours(change: Change) -> tuple[Answer, str]:
    report = look_offline(content_with(change.new), content_with(change.old) if change.old is not None else None)
    refusing = [one for one in report.findings if one.rule in REFUSING and one.severity is Severity.BREAKING]
    if refusing:
        return Answer.REFUSED, "; ".join(one.message for one in refusing)
    unknown = [one for one in report.findings if one.rule in UNKNOWING and one.severity is not Severity.SAFE]
    return (Answer.UNKNOWN, unknown[0].message) if unknown else (Answer.ACCEPTED, "")
