"""The table of facts, made by asking a real API server: `python -m tests.provisioner.builtin.asking KUBECONFIG`.

Each specimen is created; what stands in it then and was not sent is a default. Then it is tried, by dry-run, with one
field changed or left out, as an update and as a new object: what may be new and may not be an update never changes.
At last each field gets values that nobody would write, and what the server says of them tells what it takes.
"""

from __future__ import annotations

import copy
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml

from provisioner.builtin.forms import FORMS
from provisioner.builtin.schemas import MINORS, misfits, schemas_of
from provisioner.cluster.client.api import MUST_NOT_EXIST, ClusterClient
from provisioner.errors import ClusterError
from provisioner.values import ObjectRef
from tests.support.kubernetes.live import wait_until

SPECIMENS = Path(__file__).parent / "specimens.yaml"
TABLE = Path(__file__).parents[3] / "provisioner/builtin/facts.json"
# What every pod has stands once, as found in the template of this kind.
PODS, PODS_OF = "PodSpec", ("apps/v1 Deployment", "spec.template.spec.")
POD_PLACES = ("spec.jobTemplate.spec.template.spec.", "spec.template.spec.", "template.spec.")
MANAGER = "facts"
WORKERS = 8
UNLIKELY_TEXT = "Not/A_name!"
LARGEST_INTEGER = 2_000_000_000
Where = tuple[str | int, ...]
Row = dict[str, Any]
_IS_ONE_OF = re.compile(r"supported values: (.+)$")
_EITHER = re.compile(r"must be either (.+)$")
_MOST = re.compile(r"(?:not be greater than|less than|equal to) (\d+)")
_BETWEEN = re.compile(r"(?:must be|in the range|in range|between)[^\d-]*(-?\d+)(?:-| and | to )(\d+)")
# Of these the server tells the form of a name, and takes `*`, too.
_ALSO_ALL = (("flowcontrol.apiserver.k8s.io/v1 FlowSchema", "spec.rules[].resourceRules[].namespaces[]"),)
_FORMS = {
    "prefix part": "qualified",
    "lowercase RFC 1123 label": "label",
    "lowercase RFC 1123 subdomain": "subdomain",
    "DNS-1035 label": "label-1035",
    "name part must consist of": "qualified",
    "a valid label must be": "label-value",
    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens": "port-name",
    "a valid config key must consist": "config-key",
    "may not contain '/'": "path-segment",
    "must be an absolute path": "absolute",
    "must start with a '/'": "absolute",
    "must be a valid IP address": "ip",
    "must be a valid CIDR value": "cidr",
    "a valid environment variable name": "environment",
}


@dataclass(slots=True)
class Found:
    """What one specimen taught: rows by path, of each field whether a change of it was refused, and which values that
    nobody would write were taken; `unread` is what the server said and no row can hold."""

    kind: str
    stored: dict[str, Any]
    rows: dict[str, Row] = field(default_factory=lambda: defaultdict(dict))
    fixed: dict[str, set[bool]] = field(default_factory=lambda: defaultdict(set))
    accepted: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    unread: set[tuple[str, str, str]] = field(default_factory=set)


def specimens(namespace: str, scoped: dict[str, bool]) -> list[dict[str, Any]]:
    """The objects of the file, those that have a namespace in `namespace`."""
    found = []
    for one in yaml.load(SPECIMENS.read_text(), Loader=yaml.CSafeLoader):
        made = copy.deepcopy(one)
        if scoped[kind_of(one)]:
            made["metadata"]["namespace"] = namespace
        found.append(made)
    return found


def kind_of(obj: dict[str, Any]) -> str:
    return f"{obj['apiVersion']} {obj['kind']}"


def table(cluster: ClusterClient, namespace: str) -> dict[str, dict[str, Row]]:
    """The facts by kind and path, asked in `namespace`, which exists and is the caller's to remove."""
    scoped = {
        f"{one.group}/{one.version} {one.kind}".lstrip("/"): one.is_namespaced for one in cluster.served().resources
    }
    account = ObjectRef("", "v1", "ServiceAccount", namespace, "default")
    wait_until(lambda: cluster.get(account) is not None, "the account of the namespace")
    made = specimens(namespace, scoped)
    # What limits others in their namespace comes last, so that nothing is refused for its sake.
    limiting = [one for one in made if one["kind"] in ("LimitRange", "ResourceQuota")]
    others = [one for one in made if one not in limiting]
    try:
        with ThreadPoolExecutor(WORKERS) as pool:
            found = []
            for group in (others, limiting):
                found += pool.map(lambda one: _learned(cluster, one), group)
    finally:
        for one in made:
            cluster.delete(ObjectRef.of(one))
    _tell_unread(found)
    return _joined(found)


def _tell_unread(found: list[Found]) -> None:
    for line in sorted({" ".join(words) for one in found for words in one.unread}):
        sys.stderr.write(f"not read: {line}\n")


def written(facts: dict[str, dict[str, Row]]) -> str:
    """The table as the file holds it: a row a line."""
    lines = []
    for kind in sorted(facts):
        rows = [f"    {_json(path)}: {_json(facts[kind][path])}" for path in sorted(facts[kind])]
        lines.append(f"  {_json(kind)}: {{\n" + ",\n".join(rows) + "\n  }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _learned(cluster: ClusterClient, sent: dict[str, Any]) -> Found:
    stored = cluster.apply(sent, field_manager=MANAGER).object
    found = Found(kind_of(sent), stored)
    again = _new(cluster, sent)
    assert isinstance(again, dict), (sent["metadata"], again)
    for path, value in _added(sent, stored, ()):
        if path[0] not in ("metadata", "status") and value is not None:
            is_same = _at(again, path) == value
            found.rows[_named(path)] = {"default": value} if is_same else {"allocated": True}
    for path, value in _leaves(sent, ()):
        if path[0] not in ("apiVersion", "kind", "metadata"):
            _try_field(cluster, found, sent, (path, value))
    for path in _holders(sent):
        _try_without(cluster, found, sent, path)
    return found


def _try_field(cluster: ClusterClient, found: Found, sent: dict[str, Any], leaf: tuple[Where, Any]) -> None:
    path, value = leaf
    row = found.rows[_named(path)]
    for other in _others(value):
        if _tried(cluster, found, sent, (path, other)):
            break
        if "oneOf" in row:  # one of these will do
            any(_tried(cluster, found, sent, (path, one)) for one in row["oneOf"] if one != value)
            break
    for bad in _unlikely(value):
        answer = _new(cluster, _with(sent, path, bad))
        if isinstance(answer, dict):
            found.accepted[_named(path)].append(bad)
        else:
            _read(found, row, path, (bad, answer))
    if isinstance(value, str) and row.get("form") and not FORMS[row["form"]][0](value):
        row.pop("form")
    if "most" in row and isinstance(_new(cluster, _with(sent, path, row["most"] + 1)), dict):
        row["most"] += 1  # the words of the server are not always exact


def _tried(cluster: ClusterClient, found: Found, sent: dict[str, Any], leaf: tuple[Where, Any]) -> bool:
    """Whether a new object may have the value; if so, it is tried as an update as well."""
    path, value = leaf
    changed = _with(sent, path, value)
    answer = _new(cluster, changed)
    if isinstance(answer, dict):
        found.fixed[_named(path)].add(_is_refused(cluster, changed))
        return True
    _read(found, found.rows[_named(path)], path, (value, answer))
    return False


def _try_without(cluster: ClusterClient, found: Found, sent: dict[str, Any], path: Where) -> None:
    less = _without(sent, path)
    answer = _new(cluster, less)
    if isinstance(answer, dict):
        if path in _required(less):
            found.rows[_named(path)]["optional"] = True
        if not isinstance(_at(sent, path), dict | list) and _at(answer, path) != _at(sent, path):
            found.fixed[_named(path)].add(_is_refused(cluster, less))
        return
    causes = _causes(answer)
    if any(_named(_where(at)) == _named(path) and "Required value" in words for at, words in causes):
        found.rows[_named(path)]["required"] = True


def _required(obj: dict[str, Any]) -> set[Where]:
    """What the schema of its kind misses in an object."""
    schemas = schemas_of(MINORS[-1])
    schema = schemas.of(obj["apiVersion"], obj["kind"]) if schemas else None
    assert schemas is not None and schema is not None
    return {one.path for one in misfits(schemas, schema, obj) if one.is_missing}


def _is_refused(cluster: ClusterClient, obj: dict[str, Any]) -> bool:
    try:
        cluster.apply(obj, field_manager=MANAGER, dry_run=True)
    except ClusterError as exc:
        if exc.status not in (403, 409, 422):
            raise
        return True
    return False


def _new(cluster: ClusterClient, obj: dict[str, Any]) -> dict[str, Any] | ClusterError:
    """The object as it would be if it were new, under a name of its own; or the refusal."""
    meta = {**obj["metadata"], "resourceVersion": MUST_NOT_EXIST}
    if obj["kind"] != "APIService":
        meta["name"] = f"new-{meta['name']}"
    else:
        spec = {**(obj.get("spec") or {}), "version": "v2"}
        meta["name"], obj = f"v2.{spec.get('group', '')}", {**obj, "spec": spec}
    changed = copy.deepcopy({**obj, "metadata": meta})
    for port in (changed.get("spec") or {}).get("ports") or []:  # ports of nodes are given once
        if isinstance(port, dict) and isinstance(port.get("nodePort"), int) and 31000 < port["nodePort"] < 31100:
            port["nodePort"] += 500
    if obj["kind"] == "Service" and (changed.get("spec") or {}).get("healthCheckNodePort") == 31234:
        changed["spec"]["healthCheckNodePort"] = 31734
    if obj["kind"] == "Service" and str((changed.get("spec") or {}).get("clusterIP", "")).startswith("10.96.44"):
        changed["spec"]["clusterIP"] = "10.96.45.45"
    try:
        return cluster.apply(changed, field_manager=MANAGER, dry_run=True).object
    except ClusterError as exc:
        return exc


def _read(found: Found, row: Row, path: Where, refused: tuple[Any, ClusterError]) -> None:
    """What a refusal of a value says of the field at `path` itself."""
    value, refusal = refused
    for at, words in _causes(refusal):
        if at and _named(_where(at)) == _named(path) and not _taken(row, words, value):
            found.unread.add((found.kind, _named(path), words))


def _taken(row: Row, words: str, value: Any) -> bool:
    """Whether a row could be made of what is said of `value`."""
    if "`" in words.partition(": ")[2].partition(": ")[2]:
        return False  # of two fields together
    form = next((form for said, form in _FORMS.items() if said in words), "")
    if "Required value" in words:
        row["filled"] = True
    elif named := _IS_ONE_OF.search(words):
        row["oneOf"] = sorted(re.findall(r'"([^"]*)"', named[1]))
    elif named := _EITHER.search(words):
        row["oneOf"] = sorted(re.findall(r"[A-Z]\w+", named[1]))
    elif form:
        row.setdefault("form", form)
        if value == "":  # of some forms it is one
            row["filled"] = True
    else:
        return _has_limit(row, words, value)
    return True


def _has_limit(row: Row, words: str, value: Any) -> bool:
    if match := _BETWEEN.search(words):
        base = 8 if "octal" in words else 10
        row["least"], row["most"] = int(match[1], base), int(match[2], base)
    elif isinstance(value, int) and value <= 0:
        row["least"] = max(value + 1, row.get("least", 0))
    elif isinstance(value, int) and (match := _MOST.search(words)):
        row["most"] = int(match[1]) - ("less than " in words and "equal" not in words)
    else:
        return False
    return True


def _causes(refusal: ClusterError) -> list[tuple[str, str]]:
    return [(str(one.get("field") or ""), str(one.get("message") or "")) for one in refusal.details.get("causes") or ()]


def _others(value: Any) -> Iterator[Any]:
    """Values that might do as well as `value`."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        if re.fullmatch(r"[\d.]+[GMk]i?|\d+m?", value):
            yield from ("3Gi", "300m", "3")
        elif value.endswith("%"):
            yield "40%"
        yield from (f"{value}x", f"x{value}", "10.0.0.3", "10.9.0.0/16", "Yg==")


def _unlikely(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield from (LARGEST_INTEGER, -1, 0)
    elif isinstance(value, str):
        yield from (UNLIKELY_TEXT, "")


def _joined(found: list[Found]) -> dict[str, dict[str, Row]]:
    facts: dict[str, dict[str, Row]] = {}
    for kind in sorted({one.kind for one in found}):
        facts[kind] = _of_kind([one for one in found if one.kind == kind])
    facts[PODS] = {}
    _share_pods(facts)
    for kind, path in _ALSO_ALL:
        facts[kind][path].pop("form", None)
    rows_of = {kind: {path: row for path, row in rows.items() if row} for kind, rows in facts.items()}
    return {kind: rows for kind, rows in rows_of.items() if rows}


def _of_kind(found: list[Found]) -> dict[str, Row]:
    """The rows of one kind; a default or a need that only some specimens show depends on something else."""
    rows: dict[str, Row] = defaultdict(dict)
    unsteady: set[str] = set()
    for one in found:
        for path, row in one.rows.items():
            if "default" in row and row["default"] != rows[path].get("default", row["default"]):
                unsteady.add(path)
            rows[path] |= row
    for path, row in rows.items():
        is_lacking = any(_lacks(one.stored, _steps(path)) for one in found)
        for word in (*(("default",) if path in unsteady else ()), *(("default", "required") if is_lacking else ())):
            row.pop(word, None)
        _without_accepted(row, [value for one in found for value in one.accepted.get(path, ())])
    fixed = {path: set().union(*(one.fixed.get(path, ()) for one in found)) for one in found for path in one.fixed}
    for path in _prefixes(fixed):
        rows[path]["fixed"] = True
    return rows


def _without_accepted(row: Row, values: list[Any]) -> None:
    """Without the limits that do not always hold."""
    numbers = [one for one in values if not isinstance(one, str)]
    if numbers and "least" in row:
        row["least"] = min(row["least"], *numbers)
    if numbers and max(numbers) > row.get("most", LARGEST_INTEGER):
        row.pop("most")
    if UNLIKELY_TEXT in values:
        row.pop("form", None)
        row.pop("oneOf", None)
    if "" in values:
        row.pop("filled", None)
    if "oneOf" in row and "default" in row and row["default"] not in row["oneOf"]:
        row.pop("oneOf")


def _steps(path: str) -> list[str]:
    return path.replace("[]", ".[]").split(".")


def _prefixes(fixed: dict[str, set[bool]]) -> list[str]:
    """The shortest paths below which nothing that was tried may change."""
    found: list[str] = []
    for path in sorted(fixed, key=lambda it: it.count(".")):
        steps = _steps(path)
        for length in range(1, len(steps) + 1):
            prefix = ".".join(steps[:length]).replace(".[]", "[]")
            below = [it for it in fixed if it == prefix or it.startswith((f"{prefix}.", f"{prefix}[]"))]
            if below and all(fixed[it] == {True} for it in below):
                found.append(prefix)
                break
    return sorted(set(found))


def _share_pods(facts: dict[str, dict[str, Row]]) -> None:
    kind, place = PODS_OF
    for path, row in facts[kind].items():
        if path.startswith(place):
            facts[PODS][path.removeprefix(place)] = {key: it for key, it in row.items() if key != "fixed"}
    facts[PODS]["restartPolicy"].pop("oneOf")  # each kind has its own
    for kind, rows in facts.items():
        for path in list(rows):
            if kind != PODS and (path.startswith(POD_PLACES) or (kind == "v1 Pod" and path.startswith("spec."))):
                own = {"fixed"} | ({"oneOf"} if path.endswith("spec.restartPolicy") else set())
                rows[path] = {key: it for key, it in rows[path].items() if key in own}


# Places in objects


def _named(path: Where) -> str:
    """A path with [] for any item of a list, and {} for any key of a map that holds what people name."""
    text = ""
    for number, part in enumerate(path):
        is_free = number > 0 and path[number - 1] in _FREE and isinstance(part, str)
        step = "[]" if isinstance(part, int) else "{}" if is_free else part
        text += step if step == "[]" or not text else f".{step}"
    return text


_FREE = frozenset(
    [
        "annotations",
        "binaryData",
        "capacity",
        "data",
        "default",
        "defaultRequest",
        "hard",
        "labels",
        "limits",
        "matchLabels",
        "max",
        "maxLimitRequestRatio",
        "min",
        "nodeSelector",
        "podFixed",
        "requests",
        "stringData",
        "volumeAttributes",
    ]
)


def _where(text: str) -> Where:
    """A path as the server writes it: `spec.ports[0].name`, `data[a]`."""
    steps: list[str | int] = []
    for name, inner in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", text):
        steps.append(int(inner) if inner.isdigit() else name or inner)
    return tuple(steps)


def _leaves(value: Any, path: Where) -> Iterator[tuple[Where, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*path, number))
    else:
        yield path, value


def _holders(obj: dict[str, Any]) -> list[Where]:
    """Every field, those that hold others included, but not what names the object."""
    found = set()
    for path, _ in _leaves(obj, ()):
        if path[0] not in ("apiVersion", "kind", "metadata"):
            found |= {path[:length] for length in range(1, len(path) + 1)}
    return sorted((path for path in found if isinstance(path[-1], str)), key=str)


def _added(sent: Any, stored: Any, path: Where) -> Iterator[tuple[Where, Any]]:
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, value in stored.items():
            if key in sent:
                yield from _added(sent[key], value, (*path, key))
            else:
                yield (*path, key), value
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for number, one in enumerate(sent):
            yield from _added(one, stored[number], (*path, number))


def _lacks(value: Any, steps: list[str]) -> bool:
    """Whether somewhere in `value` the last step is missing from what the others lead to."""
    step, *rest = steps
    if not rest and step in ("[]", "{}"):
        return False
    if step == "[]":
        return isinstance(value, list) and any(_lacks(one, rest) for one in value)
    if not isinstance(value, dict):
        return False
    if not rest:
        return value.get(step) is None
    return any(_lacks(one, rest) for key, one in value.items() if step in (key, "{}"))


def _at(obj: Any, path: Where) -> Any:
    for step in path:
        try:
            obj = obj[step]
        except (KeyError, IndexError, TypeError):
            return None
    return obj


def _with(obj: dict[str, Any], path: Where, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(obj)
    _at(made, path[:-1])[path[-1]] = value
    return made


def _without(obj: dict[str, Any], path: Where) -> dict[str, Any]:
    made = copy.deepcopy(obj)
    del _at(made, path[:-1])[path[-1]]
    return made


def main() -> None:
    cluster = ClusterClient.connect(Path(sys.argv[1]).read_text(), timeout_seconds=20.0)
    namespace = "builtin-facts"
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, field_manager=MANAGER)
    try:
        TABLE.write_text(written(table(cluster, namespace)))
    finally:
        cluster.delete(ObjectRef("", "v1", "Namespace", "", namespace))


if __name__ == "__main__":
    main()
