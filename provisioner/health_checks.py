"""Health checks that a BundleDeployment asks for itself (`spec.healthChecks`), beyond the built-in rules. PURE.

Each check selects objects and asserts one thing of them. What cannot be evaluated, or is not there, is never healthy.
CEL is asked elsewhere (cluster.health.cel_checks); what its answers mean is said here.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.errors import BadHealthCheck
from provisioner.expressions import ExpressionAnswer, ExpressionOutcome, Language, problem_words
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
LANGUAGE = Language.of({**dict.fromkeys(("self", *_FIELDS), "dyn"), "apiVersion": "string", "kind": "string"})


@dataclass(frozen=True, slots=True)
class ConditionIs:
    """The object has this condition with this status, seen for its present generation."""

    type: str
    status: str = "True"

    def judge(self, obj: JsonObject, answers: Sequence[ExpressionAnswer] = ()) -> Health:
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
        words = f"its condition {self.type} is not {self.status}"
        return _waits(words, f"it is {_quoted(found[0].get('status'))}{reason}")


@dataclass(frozen=True, slots=True)
class FieldIs:
    """The value at a path such as `status.nodes[0].phase` equals `value`, type and all."""

    path: str
    value: Any

    def judge(self, obj: JsonObject, answers: Sequence[ExpressionAnswer] = ()) -> Health:
        found: Any = obj
        for step in _steps(self.path):
            if not _has(found, step):
                return _waits(f"has no {self.path}")
            found = found[step]
        if _canonical(found) == _canonical(self.value):
            return Health(HealthState.CURRENT)
        return _waits(f"its {self.path} is not {_quoted(self.value)}", f"it is {_quoted(found)}")


@dataclass(frozen=True, slots=True)
class Expressions:
    """CEL, asked in this order: `in_progress` and `failed` ("" for none), then `current`."""

    current: str
    in_progress: str = ""
    failed: str = ""

    @property
    def texts(self) -> tuple[tuple[str, str, HealthState], ...]:
        """The expressions that are there, in their order: name, text, and the state that a true one means."""
        every = (
            ("inProgress", self.in_progress, HealthState.IN_PROGRESS),
            ("failed", self.failed, HealthState.FAILED),
            ("current", self.current, HealthState.CURRENT),
        )
        return tuple(one for one in every if one[1])

    def judge(self, obj: JsonObject, answers: Sequence[ExpressionAnswer] = ()) -> Health:
        for (name, text, state), found in zip(self.texts, answers, strict=True):
            if not found.is_bool:
                problem = problem_words(text, found) or "it is not a yes or a no"
                return Health(HealthState.UNKNOWN, f"its CEL check {name} could not be evaluated: {problem}")
            if found.is_true:
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
    def expressions(self) -> tuple[str, ...]:
        """What to ask of LANGUAGE about each object; nothing for a check without CEL."""
        return tuple(text for _, text, _ in self.assertion.texts) if isinstance(self.assertion, Expressions) else ()

    def selects(self, ref: ObjectRef) -> bool:
        is_kind = (ref.api_version, ref.kind) == (self.api_version, self.kind)
        return is_kind and self.name in ("", ref.name) and self.namespace in ("", ref.namespace)

    def judge(self, obj: JsonObject, answers: Sequence[ExpressionAnswer] = ()) -> Health:
        """Whether a live object is as the check wants it: Current, or why not. `answers` are of its expressions."""
        return self.assertion.judge(obj, answers)

    def __str__(self) -> str:
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.kind} of {self.api_version}" + (f", {place}" if place else "")


def health_checks(spec: Mapping[str, Any]) -> tuple[HealthCheck, ...]:
    """The checks of a BundleDeployment's spec, in their order.

    Raises BadHealthCheck, which names everything that is wrong with them. CEL is not compiled here: see check_compiled.
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
            found.append(_parse_check(entry))
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
            f"spec.progressDeadlineMinutes is {_quoted(found)}; expected a number from 1 to {MAX_DEADLINE_MINUTES}"
        )
    return found


def check_spec(spec: Mapping[str, Any]) -> tuple[HealthCheck, ...]:
    """The checks of a spec. Raises BadHealthCheck where its health part cannot be read; CEL is not compiled here."""
    checks = health_checks(spec)
    deadline_minutes(spec, default=1)
    return checks


def check_compiled(checks: Iterable[HealthCheck], answers: Mapping[str, ExpressionAnswer]) -> None:
    """Raises BadHealthCheck for each expression that does not compile; `answers` by the text of the expression.

    One that a limit ended is let through: it is never healthy, and its health says why.
    """
    problems = [
        f"spec.healthChecks[{index}]: cel.{name}: {problem}"
        for index, check in enumerate(checks)
        if isinstance(check.assertion, Expressions)
        for name, text, _ in check.assertion.texts
        if (problem := _not_compiled(text, answers[text]))
    ]
    if problems:
        raise BadHealthCheck("; ".join(problems))


def facts_of(obj: JsonObject) -> dict[str, Any]:
    """What an expression may read of an object: the whole as `self`, and its fields."""
    facts = {"self": obj, **{name: obj.get(name) or {} for name in _FIELDS}}
    return facts | {name: str(obj.get(name) or "") for name in ("apiVersion", "kind")}


def unused(checks: Iterable[HealthCheck], refs: Iterable[ObjectRef]) -> list[HealthCheck]:
    """The checks that select none of these objects: they assert nothing, which is not the same as all well."""
    known = list(refs)
    return [check for check in checks if not any(check.selects(ref) for ref in known)]


def _parse_check(entry: Any) -> HealthCheck:
    if not isinstance(entry, Mapping):
        raise BadHealthCheck(f"expected an object, found {_quoted(entry)}")
    strange = sorted(map(str, entry.keys() - {*_SELECTORS, *_ASSERTIONS}))
    if strange:
        raise BadHealthCheck(f"{', '.join(strange)}: no such field; known are {', '.join((*_SELECTORS, *_ASSERTIONS))}")
    asserted = [name for name in _ASSERTIONS if name in entry]
    if len(asserted) != 1:
        raise BadHealthCheck(f"asserts {' and '.join(asserted) or 'nothing'}; expected exactly one of "
                             f"{', '.join(_ASSERTIONS)}")  # fmt: skip
    api_version, kind = _text_field(entry, "apiVersion"), _text_field(entry, "kind")
    check = HealthCheck(
        api_version,
        kind,
        _READ[asserted[0]](_fields(entry[asserted[0]], asserted[0])),
        _text_field(entry, "name", otherwise=""),
        _text_field(entry, "namespace", otherwise=""),
    )
    if (api_version, kind) == ("v1", "Secret"):
        raise BadHealthCheck("a Secret has no state to check, and its values are never read for one")
    return check


def _condition(fields: Mapping[str, Any]) -> ConditionIs:
    _only(fields, "condition", ("type", "status"))
    status = _text_field(fields, "status", otherwise="True")
    if status not in ("True", "False", "Unknown"):
        raise BadHealthCheck(f"condition.status is {_quoted(status)}; expected True, False or Unknown")
    return ConditionIs(_text_field(fields, "type", most=316), status)


def _field_value(fields: Mapping[str, Any]) -> FieldIs:
    _only(fields, "fieldValue", ("path", "value"))
    path = _text_field(fields, "path", most=MAX_PATH)
    if "value" not in fields:
        raise BadHealthCheck("fieldValue.value is missing")
    _steps(path)
    return FieldIs(path, fields["value"])


def _expressions(fields: Mapping[str, Any]) -> Expressions:
    _only(fields, "cel", ("inProgress", "failed", "current"))
    texts = {name: _text_field(fields, name, otherwise="", most=MAX_EXPRESSION) for name in ("inProgress", "failed")}
    return Expressions(_text_field(fields, "current", most=MAX_EXPRESSION), texts["inProgress"], texts["failed"])


def _not_compiled(text: str, found: ExpressionAnswer) -> str:
    if found.outcome is ExpressionOutcome.NOT_COMPILED:
        return problem_words(text, found)
    if found.outcome is ExpressionOutcome.COMPILED and found.type not in ("bool", "dyn"):
        return f"gives {found.type}; expected bool"
    return ""


_READ: dict[str, Callable[[Mapping[str, Any]], ConditionIs | FieldIs | Expressions]] = {
    "condition": _condition,
    "fieldValue": _field_value,
    "cel": _expressions,
}


def _fields(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadHealthCheck(f"{name}: expected an object, found {_quoted(value)}")
    return value


def _only(fields: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
    if strange := sorted(map(str, fields.keys() - set(known))):
        raise BadHealthCheck(f"{where}.{strange[0]}: no such field; known are {', '.join(known)}")


def _text_field(fields: Mapping[str, Any], name: str, *, otherwise: str | None = None, most: int = MAX_TEXT) -> str:
    found = fields.get(name, otherwise)
    if not isinstance(found, str) or (not found.strip() and otherwise is None):
        raise BadHealthCheck(f"{name} is {'missing' if found is None else _quoted(found)}; expected a text")
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
            raise BadHealthCheck(f"fieldValue.path {_quoted(path)}: cannot be read from {_quoted(path[at:])}; expected "
                                 "such as status.nodes[0].phase or metadata.labels['example.com/x']")  # fmt: skip
        steps.append(int(step[2]) if step[2] else step[1] or step[3] or step[4])
        at = step.end()
    return tuple(steps)


def _has(value: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(value, list) and step < len(value)
    return isinstance(value, Mapping) and step in value


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _quoted(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _waits(words: str, found: str = "") -> Health:
    return Health(HealthState.IN_PROGRESS, words, found)
