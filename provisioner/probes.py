"""Health checks that a BundleDeployment asks for itself (`spec.healthChecks`), beyond the built-in rules. PURE.

Each check selects objects and asserts one thing of them. What cannot be evaluated, or is not there, is never healthy.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cel_expr_python import cel

from provisioner.errors import BadHealthCheck
from provisioner.values import Health, HealthState, JsonObject, ObjectRef

MAX_CHECKS = 50
MAX_DEADLINE_MINUTES = 1440
MAX_TEXT = 253
MAX_PATH = 500
MAX_EXPRESSION = 4000
MAX_OBJECT_BYTES = 1024 * 1024
_MAX_SHOWN = 100
_ASSERTIONS = ("condition", "fieldValue", "cel")
_SELECTORS = ("apiVersion", "kind", "name", "namespace")
_STEP = re.compile(r"\.?([A-Za-z_$][A-Za-z0-9_$-]*)|\[([0-9]{1,6})\]|\['([^']+)'\]|\[\"([^\"]+)\"\]")
# What an expression may name: `self` is the whole object, the rest its fields; an absent field is an empty map.
_FIELDS = ("metadata", "spec", "status", "data")


@dataclass(frozen=True, slots=True)
class ConditionIs:
    """The object has this condition with this status, seen for its present generation."""

    type: str
    status: str = "True"

    def judge(self, obj: JsonObject) -> Health:
        status = obj.get("status")
        conditions = status.get("conditions") if isinstance(status, Mapping) else None
        listed = conditions if isinstance(conditions, list) else []
        found = [it for it in listed if isinstance(it, Mapping) and it.get("type") == self.type]
        if not found:
            return _waits(f"has no condition {self.type}")
        seen, generation = found[0].get("observedGeneration"), (obj.get("metadata") or {}).get("generation")
        if seen is not None and generation is not None and seen != generation:
            return _waits(f"its condition {self.type} is of generation {seen}, the object of {generation}")
        if found[0].get("status") == self.status:
            return Health(HealthState.CURRENT)
        reason = f" ({found[0]['reason']})" if found[0].get("reason") else ""
        return _waits(f"its condition {self.type} is {_shown(found[0].get('status'))}{reason}; expected {self.status}")


@dataclass(frozen=True, slots=True)
class FieldIs:
    """The value at a path such as `status.nodes[0].phase` equals `value`, type and all."""

    path: str
    value: Any

    def judge(self, obj: JsonObject) -> Health:
        found: Any = obj
        for step in _steps(self.path):
            if not _has(found, step):
                return _waits(f"has no {self.path}")
            found = found[step]
        if _canonical(found) == _canonical(self.value):
            return Health(HealthState.CURRENT)
        return _waits(f"its {self.path} is {_shown(found)}; expected {_shown(self.value)}")


@dataclass(frozen=True, slots=True)
class Expressions:
    """CEL, asked in this order: `in_progress` and `failed` ("" for none), then `current`."""

    current: str
    in_progress: str = ""
    failed: str = ""

    def judge(self, obj: JsonObject) -> Health:
        facts = {"self": obj, **{name: obj.get(name) or {} for name in _FIELDS}}
        facts |= {name: str(obj.get(name) or "") for name in ("apiVersion", "kind")}
        answers = (
            (self.in_progress, "inProgress", HealthState.IN_PROGRESS),
            (self.failed, "failed", HealthState.FAILED),
            (self.current, "current", HealthState.CURRENT),
        )
        for text, name, state in answers:
            is_true, problem = _evaluated(text, facts) if text else (False, "")
            if problem:
                return Health(HealthState.UNKNOWN, f"its CEL check {name} could not be evaluated: {problem}")
            if is_true:
                return Health(state, "" if state is HealthState.CURRENT else f"its CEL check {name} is true")
        return _waits("its CEL check current is not true yet")


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One entry of `spec.healthChecks`; `name` and `namespace` select every one where they are ""."""

    api_version: str
    kind: str
    assertion: ConditionIs | FieldIs | Expressions
    name: str = ""
    namespace: str = ""

    @property
    def needs_cel(self) -> bool:
        return isinstance(self.assertion, Expressions)

    def selects(self, ref: ObjectRef) -> bool:
        is_kind = (ref.api_version, ref.kind) == (self.api_version, self.kind)
        return is_kind and self.name in ("", ref.name) and self.namespace in ("", ref.namespace)

    def judge(self, obj: JsonObject) -> Health:
        """Whether a live object is as the check wants it: Current, or why not."""
        return self.assertion.judge(obj)

    def __str__(self) -> str:
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.kind} of {self.api_version}" + (f", {place}" if place else "")


def health_checks(spec: Mapping[str, Any]) -> tuple[HealthCheck, ...]:
    """The checks of a BundleDeployment's spec, in their order.

    Raises BadHealthCheck, which names everything that is wrong with them; CEL is compiled and type-checked here.
    """
    given = spec.get("healthChecks") or []
    if not isinstance(given, list):
        raise BadHealthCheck("spec.healthChecks is not a list")
    if len(given) > MAX_CHECKS:
        raise BadHealthCheck(f"spec.healthChecks has {len(given)} entries; at most {MAX_CHECKS} are allowed")
    found: list[HealthCheck] = []
    problems: list[str] = []
    for index, entry in enumerate(given):
        try:
            found.append(_check(entry))
        except BadHealthCheck as exc:
            problems.append(f"spec.healthChecks[{index}]: {exc}")
    if problems:
        raise BadHealthCheck("; ".join(problems))
    return tuple(found)


def deadline_minutes(spec: Mapping[str, Any], *, default: int) -> int:
    """Within how many minutes of being applied a revision shall be healthy; raises BadHealthCheck out of range."""
    found = spec.get("progressDeadlineMinutes", default)
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= MAX_DEADLINE_MINUTES:
        raise BadHealthCheck(
            f"spec.progressDeadlineMinutes is {_shown(found)}; expected a whole number from 1 to {MAX_DEADLINE_MINUTES}"
        )
    return found


def check_spec(spec: Mapping[str, Any]) -> None:
    """Raises BadHealthCheck where the health part of a BundleDeployment's spec cannot be read."""
    health_checks(spec)
    deadline_minutes(spec, default=1)


def as_entry(check: HealthCheck) -> dict[str, Any]:
    """The entry of `spec.healthChecks` that `health_checks` reads as this check."""
    found: dict[str, Any] = {"apiVersion": check.api_version, "kind": check.kind}
    found |= {key: text for key, text in (("name", check.name), ("namespace", check.namespace)) if text}
    match check.assertion:
        case ConditionIs(type, status):
            return found | {"condition": {"type": type, "status": status}}
        case FieldIs(path, value):
            return found | {"fieldValue": {"path": path, "value": value}}
        case Expressions(current, in_progress, failed):
            texts = {"current": current, "inProgress": in_progress, "failed": failed}
            return found | {"cel": {name: text for name, text in texts.items() if text}}


def unused(checks: Iterable[HealthCheck], refs: Iterable[ObjectRef]) -> list[HealthCheck]:
    """The checks that select none of these objects: they assert nothing, which is not the same as all well."""
    known = list(refs)
    return [check for check in checks if not any(check.selects(ref) for ref in known)]


def _check(entry: Any) -> HealthCheck:
    if not isinstance(entry, Mapping):
        raise BadHealthCheck(f"expected an object, found {_shown(entry)}")
    strange = sorted(map(str, entry.keys() - {*_SELECTORS, *_ASSERTIONS}))
    if strange:
        raise BadHealthCheck(f"{', '.join(strange)}: no such field; known are {', '.join((*_SELECTORS, *_ASSERTIONS))}")
    asserted = [name for name in _ASSERTIONS if name in entry]
    if len(asserted) != 1:
        raise BadHealthCheck(f"asserts {' and '.join(asserted) or 'nothing'}; expected exactly one of "
                             f"{', '.join(_ASSERTIONS)}")  # fmt: skip
    api_version, kind = _text(entry, "apiVersion"), _text(entry, "kind")
    check = HealthCheck(
        api_version,
        kind,
        _READ[asserted[0]](_fields(entry[asserted[0]], asserted[0])),
        _text(entry, "name", otherwise=""),
        _text(entry, "namespace", otherwise=""),
    )
    if (api_version, kind) == ("v1", "Secret"):
        raise BadHealthCheck("a Secret has no state to check, and its values are never read for one")
    return check


def _condition(fields: Mapping[str, Any]) -> ConditionIs:
    _only(fields, "condition", ("type", "status"))
    status = _text(fields, "status", otherwise="True")
    if status not in ("True", "False", "Unknown"):
        raise BadHealthCheck(f"condition.status is {_shown(status)}; expected True, False or Unknown")
    return ConditionIs(_text(fields, "type", most=316), status)


def _field_value(fields: Mapping[str, Any]) -> FieldIs:
    _only(fields, "fieldValue", ("path", "value"))
    path = _text(fields, "path", most=MAX_PATH)
    if "value" not in fields:
        raise BadHealthCheck("fieldValue.value is missing")
    _steps(path)
    return FieldIs(path, fields["value"])


def _expressions(fields: Mapping[str, Any]) -> Expressions:
    _only(fields, "cel", ("inProgress", "failed", "current"))
    texts = {name: _text(fields, name, otherwise="", most=MAX_EXPRESSION) for name in ("inProgress", "failed")}
    found = Expressions(_text(fields, "current", most=MAX_EXPRESSION), texts["inProgress"], texts["failed"])
    for name, text in (*texts.items(), ("current", found.current)):
        if text:
            try:
                _compiled(text)
            except ValueError as exc:
                raise BadHealthCheck(f"cel.{name}: {exc}") from exc
    return found


_READ: dict[str, Callable[[Mapping[str, Any]], ConditionIs | FieldIs | Expressions]] = {
    "condition": _condition,
    "fieldValue": _field_value,
    "cel": _expressions,
}


def _fields(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadHealthCheck(f"{name}: expected an object, found {_shown(value)}")
    return value


def _only(fields: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
    if strange := sorted(map(str, fields.keys() - set(known))):
        raise BadHealthCheck(f"{where}.{strange[0]}: no such field; known are {', '.join(known)}")


def _text(fields: Mapping[str, Any], name: str, *, otherwise: str | None = None, most: int = MAX_TEXT) -> str:
    found = fields.get(name, otherwise)
    if not isinstance(found, str) or (not found.strip() and otherwise is None):
        raise BadHealthCheck(f"{name} is {'missing' if found is None else _shown(found)}; expected a text")
    if len(found) > most:
        raise BadHealthCheck(f"{name} has {len(found)} characters; at most {most} are allowed")
    return found


@functools.lru_cache(maxsize=256)
def _steps(path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (at > 0 and step[1] and path[at] != "."):
            raise BadHealthCheck(f"fieldValue.path {_shown(path)}: cannot be read from {_shown(path[at:])}; expected "
                                 "such as status.nodes[0].phase or metadata.labels['example.com/x']")  # fmt: skip
        steps.append(int(step[2]) if step[2] else step[1] or step[3] or step[4])
        at = step.end()
    return tuple(steps)


@functools.cache
def _environment() -> Any:
    names = dict.fromkeys(("self", *_FIELDS), cel.Type.DYN)
    return cel.NewEnv(variables=names | {"apiVersion": cel.Type.STRING, "kind": cel.Type.STRING})


@functools.lru_cache(maxsize=256)
def _compiled(text: str) -> Any:
    """The type-checked expression; raises ValueError with the compiler's words."""
    try:
        compiled = _environment().compile(text)
    except (RuntimeError, ValueError, TypeError) as exc:
        raise ValueError(_plain(exc)) from exc
    if compiled.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        raise ValueError(f"gives {compiled.return_type().name()}; expected bool")
    return compiled


def _evaluated(text: str, facts: Mapping[str, Any]) -> tuple[bool, str]:
    """(is it true, why it could not be evaluated); anything but a boolean is a problem."""
    try:
        found = _compiled(text).eval(data=dict(facts))
        value = found.value()
        if found.type() == cel.Type.BOOL:
            return value is True, ""
        if found.type() == cel.Type.ERROR:
            return False, _plain(value)
    except (RuntimeError, ValueError, TypeError, OverflowError, RecursionError) as exc:
        return False, _plain(exc)
    return False, "it is not a yes or a no"


def _plain(problem: object) -> str:
    """CEL's own words on one line, without its codes and picture."""
    first = str(problem).split("\n", maxsplit=1)[0]
    return re.sub(r"^([A-Z_]+: )+|( \[[A-Z_]+\])$|ERROR: <input>:", "", first).strip()[:300]


def _has(value: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(value, list) and step < len(value)
    return isinstance(value, Mapping) and step in value


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _shown(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _waits(words: str) -> Health:
    return Health(HealthState.IN_PROGRESS, words)
