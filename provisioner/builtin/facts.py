"""What the real API server was asked about each field: its default, its limits, and whether it may ever change.

`facts.json` holds a row a field, by kind and path: `default` (as filled in where the field is absent), `allocated`
(the server chooses), `oneOf`, `least`, `most`, `form` (see forms.FORMS), `filled` (not empty), `required`, `optional`
(although the schema says required) and `fixed` (never changes). `[]` stands for any item, `{}` for any key. It is
written by tests/provisioner/builtin/asking.py, not by hand. What depends on other fields stands in `defaulted`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import orjson

from provisioner.builtin.changes import NEVER, FieldRefusal, Path, first_difference, numbered, quoted, texts
from provisioner.builtin.forms import FORMS, alike
from provisioner.json_values import mapping
from provisioner.values import GroupKind, JsonObject

Row = Mapping[str, Any]
_PODS = "PodSpec"
_CONTAINERS, _INIT_CONTAINERS = "containers[].", "initContainers[]."
# Of each the server was asked about a part of the fields, and it judges them alike.
_PROBES = tuple(f"{_CONTAINERS}{name}." for name in ("livenessProbe", "readinessProbe", "startupProbe"))
_HOOKS = tuple(f"{_CONTAINERS}lifecycle.{name}." for name in ("postStart", "preStop"))
_OF_HOOKS = ("exec.", "httpGet.", "tcpSocket.")
# Where the template of a kind has its pods.
POD_PATHS: dict[str, tuple[str, ...]] = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "ReplicaSet": ("spec", "template", "spec"),
    "ReplicationController": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
}
_POD_GROUPS = frozenset({"v1", "apps/v1", "batch/v1"})


@dataclass(frozen=True, slots=True)
class Fact:
    """A row with the steps that lead to its field."""

    steps: tuple[str, ...]
    row: Row


@functools.cache
def _read_table() -> Mapping[str, Mapping[str, Row]]:
    found: dict[str, dict[str, Row]] = orjson.loads(files(__package__).joinpath("facts.json").read_bytes())
    return found


@functools.cache
def facts_of(api_version: str, kind: str) -> tuple[Fact, ...]:
    """The facts of a kind, those of its pods among them; outer fields first."""
    rows = dict(_read_table().get(f"{api_version} {kind}", {}))
    where = pod_path(api_version, kind)
    if where:
        for path, row in _read_pod_rows().items():
            place = f"{'.'.join(where)}.{path}"
            rows[place] = {**row, **rows.get(place, {})}
    found = [Fact(tuple(path.replace("[]", ".[]").split(".")), row) for path, row in rows.items()]
    return tuple(sorted(found, key=lambda fact: (len(fact.steps), fact.steps)))


@functools.cache
def _read_pod_rows() -> Mapping[str, Row]:
    """The rows of pods: what was found of one probe, hook or container holds for its like."""
    rows = dict(_read_table()[_PODS])
    shared = _merge_rows(rows, (*_PROBES, *_HOOKS))
    for path, row in shared.items():
        for beginning in (*_PROBES, *(_HOOKS if path.startswith(_OF_HOOKS) else ())):
            rows[f"{beginning}{path}"] = {**row, **rows.get(f"{beginning}{path}", {})}
    for path, row in _merge_rows(rows, (_CONTAINERS,)).items():
        rows[f"{_INIT_CONTAINERS}{path}"] = {**row, **rows.get(f"{_INIT_CONTAINERS}{path}", {})}
    return rows


def _merge_rows(rows: Mapping[str, Row], beginnings: tuple[str, ...]) -> dict[str, Row]:
    """What rows below any of these beginnings say, by the rest of their paths."""
    found: dict[str, Row] = {}
    for path, row in rows.items():
        for beginning in beginnings:
            if path.startswith(beginning):
                rest = path.removeprefix(beginning)
                found[rest] = {**found.get(rest, {}), **row}
    return found


def pod_path(api_version: str, kind: str) -> tuple[str, ...]:
    return POD_PATHS.get(kind, ()) if api_version in _POD_GROUPS else ()


def has_facts(api_version: str, kind: str) -> bool:
    return f"{api_version} {kind}" in _read_table()


def defaulted(obj: JsonObject) -> dict[str, Any]:
    """A copy of `obj` with what the server fills in."""
    made: dict[str, Any] = _copy_json(obj)
    api_version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    _fill_first(made, kind)
    where = pod_path(api_version, kind)
    pod: Any = made
    for step in where:
        pod = mapping(pod).get(step)
    if where and isinstance(pod, dict):
        _fill_pod(pod)
        if kind == "Pod":
            _fill_requests(pod)
    for fact in facts_of(api_version, kind):
        if "default" in fact.row:
            for holder, _ in _find_holders(made, fact.steps, ()):
                if holder.get(fact.steps[-1]) is None:
                    holder[fact.steps[-1]] = _copy_json(fact.row["default"])
    _fill_by_kind(made, kind)
    return made


# The server takes a dot at the end as well, of which the table knows nothing: `services` judges it.
_MORE_THAN_A_FORM = frozenset({("spec", "externalName")})


def misfits_of_facts(obj: JsonObject) -> Iterator[FieldRefusal]:
    """What of a defaulted object the table refuses."""
    for fact in facts_of(str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")):
        if fact.row.keys() <= {"default", "allocated", "fixed", "optional"} or fact.steps in _MORE_THAN_A_FORM:
            continue
        for value, path in _find_values(obj, fact.steps, ()):
            if words := _find_problem(fact.row, value):
                yield FieldRefusal(path, words)


def fixed_changes(old: JsonObject, new: JsonObject) -> Iterator[FieldRefusal]:
    """The fields that never change and do, of two defaulted objects of one kind."""
    for fact in facts_of(str(new.get("apiVersion") or ""), str(new.get("kind") or "")):
        if not fact.row.get("fixed"):
            continue
        before, after = (
            [(value, path) for value, path in _find_values(side, fact.steps, ()) if value is not None]
            for side in (old, new)
        )
        if not alike([value for value, _ in before], [value for value, _ in after]):
            pairs = zip(before, after, strict=False)
            differing = (
                first_difference(was, value, path)
                for (was, path), (value, other) in pairs
                if path == other and not alike(was, value)
            )
            yield FieldRefusal(next(differing, (after or before)[0][1]), NEVER, is_of_update=True)


def fixed_fields(kind: GroupKind) -> tuple[tuple[str, ...], ...]:
    """The steps to the fields of a kind, in any of its versions, that never change."""
    found: set[tuple[str, ...]] = set()
    for named in _read_table():
        api_version, _, name = named.partition(" ")
        if name == kind.kind and api_version.rpartition("/")[0] == kind.group:
            found |= {fact.steps for fact in facts_of(api_version, name) if fact.row.get("fixed")}
    return tuple(sorted(found))


def is_optional(api_version: str, kind: str, path: Path) -> bool:
    """Whether the server takes an object without a field that its schema requires."""
    named = tuple("[]" if isinstance(part, int) else part for part in path)
    return any(
        len(fact.steps) == len(named)
        and all(step in ("{}", part) for step, part in zip(fact.steps, named, strict=True))
        for fact in facts_of(api_version, kind)
        if fact.row.get("optional")
    )


def _find_problem(row: Row, value: Any) -> str:
    """Return why a row refuses a value, "" where it does not."""
    if value is None:
        return "is missing" if row.get("required") else ""
    if value in ("", []) and not isinstance(value, bool):
        if row.get("filled") or (value == [] and row.get("required")):
            return "must not be empty"
        if value == [] or "oneOf" not in row:
            return ""
    if isinstance(value, str):
        if "oneOf" in row and value not in row["oneOf"]:
            *others, last = [choice for choice in row["oneOf"] if choice] or [""]
            listed = f"{', '.join(others)} or {last}" if others else last
            return f"must be {listed}, and is {quoted(value)}"
        is_sound, words = FORMS.get(row.get("form", ""), (None, ""))
        return f"must be {words}, and is {quoted(value)}" if is_sound is not None and not is_sound(value) else ""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < row.get("least", value):
            return f"must be at least {row['least']}, and is {value}"
        if value > row.get("most", value):
            return f"must be at most {row['most']}, and is {value}"
    return ""


def _find_holders(value: Any, steps: tuple[str, ...], path: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """The mappings that have, or could have, the field to which `steps` lead, with their paths."""
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for place, item in enumerate(value) if isinstance(value, list) else ():
            if rest:
                yield from _find_holders(item, rest, (*path, place))
    elif not isinstance(value, dict):
        return
    elif not rest:
        yield value, path
    else:
        for key in [key for key in value if step in (key, "{}")]:
            yield from _find_holders(value[key], rest, (*path, key))


def _find_values(value: Any, steps: tuple[str, ...], path: Path) -> Iterator[tuple[Any, Path]]:
    """The values to which `steps` lead, None where the last of them is absent."""
    if not steps:
        yield value, path
        return
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for place, item in enumerate(value) if isinstance(value, list) else ():
            yield from _find_values(item, rest, (*path, place))
    elif isinstance(value, (dict, Mapping)):
        for key in value if step == "{}" else (step,):
            if not rest or value.get(key) is not None:
                yield from _find_values(value.get(key), rest, (*path, str(key)))


# Defaults that depend on other fields. Source: Kubernetes, pkg/apis, defaults.go of each group.


def _copy_json(value: Any) -> Any:
    """Much quicker than deepcopy, for JSON."""
    if isinstance(value, (dict, Mapping)):
        return {key: _copy_json(inner) for key, inner in value.items()}
    return [_copy_json(item) for item in value] if isinstance(value, list) else value


def _fill_first(obj: dict[str, Any], kind: str) -> None:
    """What depends on fields that have defaults themselves."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if kind == "Service" and spec.get("type") == "":
        del spec["type"]
    if kind == "Job" and spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if kind == "Job" and spec.get("podFailurePolicy") is not None and spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "Failed"
    if kind == "NetworkPolicy" and not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _fill_by_kind(obj: dict[str, Any], kind: str) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if kind in ("Deployment", "DaemonSet", "StatefulSet"):
        field = "strategy" if kind == "Deployment" else "updateStrategy"
        strategy = spec.get(field)
        if strategy is None:
            strategy = spec[field] = {}
        if isinstance(strategy, dict):
            strategy["type"] = strategy.get("type") or "RollingUpdate"
            if strategy["type"] == "RollingUpdate":
                given = mapping(strategy.get("rollingUpdate")).items()
                strategy["rollingUpdate"] = _ROLLING[kind] | {key: value for key, value in given if value is not None}
    elif kind == "Service":
        for _, port in numbered(spec.get("ports")):
            if isinstance(port, dict) and port.get("targetPort") in (None, "", 0) and spec.get("clusterIP") != "None":
                port["targetPort"] = port.get("port")
        if spec.get("type") in ("LoadBalancer", "NodePort"):
            spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
        if spec.get("type") != "ExternalName":
            spec["internalTrafficPolicy"] = spec.get("internalTrafficPolicy") or "Cluster"


_ROLLING: dict[str, dict[str, Any]] = {
    "Deployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    "DaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
    "StatefulSet": {"partition": 0},
}


def _fill_pod(pod: dict[str, Any]) -> None:
    for part in ("containers", "initContainers"):
        for _, container in numbered(pod.get(part)):
            if isinstance(container, dict):
                last = str(container.get("image") or "").rpartition("/")[2]
                is_fixed = "@" in last or (":" in last and not last.endswith(":latest"))
                policy = "IfNotPresent" if is_fixed else "Always"
                container["imagePullPolicy"] = container.get("imagePullPolicy") or policy
    account = pod.get("serviceAccountName") or pod.get("serviceAccount")
    if account:  # the older name of the field goes along
        pod["serviceAccountName"] = pod["serviceAccount"] = account
    for _, volume in numbered(pod.get("volumes")):
        if isinstance(volume, dict) and set(texts(list(volume))) == {"name"}:
            volume["emptyDir"] = {}


def _fill_requests(pod: dict[str, Any]) -> None:
    """Of a pod what is limited is requested, too; of a template only when a pod is made of it."""
    for part in ("containers", "initContainers"):
        for _, container in numbered(pod.get(part)):
            resources = container.get("resources") if isinstance(container, dict) else None
            if isinstance(resources, dict) and isinstance(resources.get("limits"), Mapping):
                resources["requests"] = {**resources["limits"], **mapping(resources.get("requests"))}
