"""Health checks of a deployment's own: what they say of objects, and what is wrong with those that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.health import observation
from provisioner.errors import BadHealthCheck
from provisioner.health_checks import MAX_CHECKS, ConditionIs, Expressions, FieldIs, HealthCheck, health_checks, unused
from provisioner.values import HealthState, JsonObject, ObjectRef
from tests.support.memory import resident_bytes

CURRENT, PROGRESS = HealthState.CURRENT, HealthState.IN_PROGRESS
FAILED, UNKNOWN = HealthState.FAILED, HealthState.UNKNOWN
READY = {"type": "Ready", "status": "True"}
SELECTED = {"apiVersion": "example.com/v1", "kind": "Widget"}


def widget(status: Any = None, **more: Any) -> JsonObject:
    meta = {"name": "w", "namespace": "shop", "generation": 2, "labels": {"example.com/tier": "gold"}}
    return {**SELECTED, "metadata": meta, **({"status": status} if status is not None else {}), **more}


def check(**assertion: Any) -> Any:
    return health_checks({"healthChecks": [{**SELECTED, **assertion}]})[0]


def condition(**fields: str) -> dict[str, Any]:
    return {"condition": {"type": "Ready", **fields}}


def field(path: str, value: Any) -> dict[str, Any]:
    return {"fieldValue": {"path": path, "value": value}}


def cel(current: str = "status.phase == 'Up'", **rest: str) -> dict[str, Any]:
    return {"cel": {"current": current, **rest}}


UP = {"phase": "Up", "nodes": [{"name": "a", "ready": True}], "count": 3, "conditions": [READY]}
ANSWERS = {
    "condition as wished": (condition(), UP, CURRENT),
    "condition is another": (condition(status="False"), UP, PROGRESS),
    "condition not there": (condition(), {"conditions": []}, PROGRESS),
    "condition without status": (condition(), None, PROGRESS),
    "condition of an older generation": (condition(), {"conditions": [READY | {"observedGeneration": 1}]}, PROGRESS),
    "condition of this generation": (condition(), {"conditions": [READY | {"observedGeneration": 2}]}, CURRENT),
    "conditions of another form": (condition(), {"conditions": {"Ready": "True"}}, PROGRESS),
    "conditions that are a text": (condition(), {"conditions": "Ready"}, PROGRESS),
    "status of another form": (condition(), "Ready", PROGRESS),
    "field as wished": (field("status.phase", "Up"), UP, CURRENT),
    "field with a leading dot": (field(".status.phase", "Up"), UP, CURRENT),
    "field is another": (field("status.phase", "Down"), UP, PROGRESS),
    "field in a list": (field("status.nodes[0].ready", True), UP, CURRENT),
    "field past a list": (field("status.nodes[1].ready", True), UP, PROGRESS),
    "field of a quoted key": (field("metadata.labels['example.com/tier']", "gold"), UP, CURRENT),
    "field of another type": (field("status.count", "3"), UP, PROGRESS),
    "a number is not a truth": (field("status.nodes[0].ready", 1), UP, PROGRESS),
    "field of a text": (field("status.phase.length", 2), UP, PROGRESS),
    "field not there is not null": (field("status.gone", None), UP, PROGRESS),
    "field is an object": (field("status.nodes[0]", {"ready": True, "name": "a"}), UP, CURRENT),
    "cel is true": (cel(), UP, CURRENT),
    "cel is not yet": (cel(), {"phase": "Starting"}, PROGRESS),
    "cel in progress first": (cel(inProgress="status.count < 4"), UP, PROGRESS),
    "cel failed before current": (cel(failed="status.count == 3"), UP, FAILED),
    "cel of a missing field": (cel(), {}, UNKNOWN),
    "cel without status": (cel("has(status.phase) && status.phase == 'Up'"), None, PROGRESS),
    "cel that cannot say failed": (cel(failed="status.broken"), UP, UNKNOWN),
    "cel of another type": (cel("status.phase > 3"), UP, UNKNOWN),
    "cel that is no yes or no": (cel("status.phase"), UP, UNKNOWN),
    "cel over conditions": (cel("status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"), UP, CURRENT),
    "cel of the whole object": (cel("self.metadata.name == metadata.name && kind == 'Widget'"), UP, CURRENT),
}


@pytest.mark.parametrize(("assertion", "status", "state"), ANSWERS.values(), ids=ANSWERS)
def test_a_check_says(assertion: Any, status: Any, state: HealthState) -> None:
    one = check(**assertion)
    (health,) = observation.cel_answers([(one, widget(status))]) if one.expressions else [one.judge(widget(status))]
    assert health.state is state
    assert health.message or state is CURRENT


BROKEN = {
    "no object": ("Ready", "expected an object"),
    "no assertion": ({**SELECTED}, "asserts nothing; expected exactly one of condition, fieldValue, cel"),
    "two assertions": ({**SELECTED, **condition(), **cel()}, "asserts condition and cel"),
    "no kind": ({"apiVersion": "v1", **condition()}, "kind is missing"),
    "strange field": ({**SELECTED, **condition(), "timeout": 3}, "timeout: no such field"),
    "strange status": ({**SELECTED, **condition(status="Yes")}, "expected True, False or Unknown"),
    "status is a truth": ({**SELECTED, "condition": {"type": "Ready", "status": True}}, "status is true"),
    "condition is a text": ({**SELECTED, "condition": "Ready"}, "condition: expected an object"),
    "field without value": ({**SELECTED, "fieldValue": {"path": "a"}}, "fieldValue.value is missing"),
    "field with a filter": ({**SELECTED, **field("status.nodes[?(@.x)]", 1)}, "cannot be read from"),
    "field glued together": ({**SELECTED, **field("status['a']b", 1)}, "cannot be read from"),
    "cel of no syntax": ({**SELECTED, **cel("status.phase ==")}, "cel.current: "),
    "cel of an unknown name": ({**SELECTED, **cel(failed="statu.phase == 'x'")}, "cel.failed: "),
    "cel of another type": ({**SELECTED, **cel("1 + 1")}, "gives int; expected bool"),
    "cel without current": ({**SELECTED, "cel": {"failed": "true"}}, "current is missing"),
    "cel too long": ({**SELECTED, **cel("true" + " " * 4000)}, "at most 4000"),
    "a Secret": ({"apiVersion": "v1", "kind": "Secret", **field("data.password", "x")}, "its values are never read"),
}


@pytest.mark.parametrize(("entry", "words"), BROKEN.values(), ids=BROKEN)
def test_a_check_that_cannot_be_read_says_what_is_wrong(entry: Any, words: str) -> None:
    with pytest.raises(BadHealthCheck, match=r"^spec\.healthChecks\[1\]: ") as caught:
        observation.check_spec({"healthChecks": [{**SELECTED, **condition()}, entry]})
    assert words in str(caught.value)


def test_everything_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(BadHealthCheck, match=r"\[0\].*; spec\.healthChecks\[2\]"):
        health_checks({"healthChecks": [3, {**SELECTED, **condition()}, {}]})


@pytest.mark.parametrize("checks", [{}, "x", [{**SELECTED, **condition()}] * (MAX_CHECKS + 1)], ids=str)
def test_checks_are_a_short_list(checks: Any) -> None:
    spec = {"healthChecks": checks}
    if not checks:
        assert health_checks(spec) == ()
        return
    with pytest.raises(BadHealthCheck):
        health_checks(spec)


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ({}, True),
        ({"name": "w"}, True),
        ({"name": "w", "namespace": "shop"}, True),
        ({"name": "v"}, False),
        ({"namespace": "other"}, False),
        ({"apiVersion": "example.com/v2"}, False),
        ({"kind": "Gadget"}, False),
    ],
    ids=str,
)
def test_a_check_selects_by_kind_name_and_namespace(selector: dict[str, str], is_selected: bool) -> None:
    (one,) = health_checks({"healthChecks": [{**SELECTED, **condition(), **selector}]})
    ref = ObjectRef.of(widget())
    assert one.selects(ref) is is_selected
    assert unused([one], [ref]) == ([] if is_selected else [one])


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


@pytest.mark.parametrize(
    "assertion", [condition(status="False"), field("a[0]", {"b": 1}), cel(failed="false")], ids=str
)
def test_a_check_keeps_all_that_its_entry_says(assertion: Any) -> None:
    one = check(**assertion)
    assert health_checks({"healthChecks": [as_entry(one)]}) == (one,)


def test_checks_that_are_asked_together_have_the_answers_that_each_has_alone() -> None:
    rows = [(check(**assertion), widget(status)) for assertion, status, _ in ANSWERS.values() if "cel" in assertion]
    assert observation.cel_answers(rows) == [observation.cel_answers([row])[0] for row in rows]


def test_a_check_that_takes_forever_is_ended_and_never_healthy() -> None:
    clause = "!a.matches('(x*)*(y|x)*z')"
    slow = check(**cel(f"status.texts.all(a, status.texts.all(b, {' && '.join([clause] * 40)}))"))
    (found,) = observation.cel_answers([(slow, widget({"texts": ["x" * 9000] * 99}))])
    assert found.state is UNKNOWN
    assert found.message.startswith("its CEL check current could not be evaluated: it took longer than ")


def test_checks_that_take_long_together_are_ended_and_never_healthy() -> None:
    (found,) = observation.cel_answers([(check(**cel()), widget(UP))], timeout_seconds=0.0)
    assert (found.state, found.message) == (UNKNOWN, "not evaluated: the CEL checks took longer than 0 s")


def test_a_check_that_loops_too_often_is_ended_by_the_library() -> None:
    numbers = list(range(300))
    (found,) = observation.cel_answers(
        [(check(**cel("status.n.all(a, status.n.all(b, true))")), widget({"n": numbers}))]
    )
    assert found.state is UNKNOWN
    assert "budget" in found.message


def test_a_check_that_eats_memory_is_never_healthy() -> None:
    greedy = check(**cel(f"status.t.map(a, status.t.map(b, {' + '.join(['b'] * 24)})).size() > 0"))
    (found,) = observation.cel_answers([(greedy, widget({"t": ["x" * 9000] * 99}))])
    assert found.state is UNKNOWN


def test_an_object_that_is_too_big_is_not_evaluated_and_does_not_stop_the_others() -> None:
    one = check(**cel())
    found = observation.cel_answers([(one, widget({"phase": "Up" * 1024 * 1024})), (one, widget(UP))])
    assert [it.state for it in found] == [UNKNOWN, CURRENT]


def test_who_wrote_a_field_is_not_part_of_the_object() -> None:
    obj = widget(UP)
    obj["metadata"]["managedFields"] = [{"manager": "x" * 2_000_000}]
    assert observation.cel_answers([(check(**cel()), obj)])[0].state is CURRENT


QUOTING = {
    "a key": "{'a': 1}[status.password] == 1",
    "a number": "int(status.password) == 1",
    "a time": "timestamp(status.password) == timestamp(0)",
    "a duration": "duration(status.password) == duration('1s')",
    "a pattern": "status.phase.matches(status.password)",
    "another type": "status.password + 1 == 2",
    "no bool": "status.password",
    "a nested key": "status[status.password].x == 1",
    "a double": "double(status.password) > 1.0",
    "bytes": "string(bytes(status.password)) == status.phase[status.password]",
}


@pytest.mark.parametrize("text", QUOTING.values(), ids=QUOTING)
def test_S27_a_check_that_cannot_be_evaluated_quotes_no_value_of_the_object(text: str) -> None:
    (found,) = observation.cel_answers([(check(**cel(text)), widget({"phase": "Up", "password": "(hunter2"}))])
    assert found.state in (UNKNOWN, PROGRESS)
    assert "hunter2" not in found.message
    assert len(found.message) < 500


BOMBS = {
    "doubling": "[metadata.name + 'xx']" + ".map(a, a + a)" * 26 + ".size() > 0",
    "comparing": "[self]" + ".map(a, [a, a])" * 26 + " == [self]" + ".map(a, [a, a])" * 26,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_S26_a_hostile_check_is_unknown_and_costs_us_no_memory(text: str) -> None:
    before = resident_bytes()
    observation.check_spec({"healthChecks": [{**SELECTED, **cel(text)}]})
    found = observation.cel_answers([(check(**cel(text)), widget(UP)), (check(**cel()), widget(UP))])
    assert [it.state for it in found] == [UNKNOWN, CURRENT]
    assert found[0].message.startswith("its CEL check current could not be evaluated: it ")
    assert resident_bytes() - before < 32 * 2**20


def test_S26_a_spec_whose_expressions_are_hostile_to_the_compiler_is_refused() -> None:
    before = resident_bytes()
    texts = ["(" * 1990 + "1" + ")" * 1990, "[" * 4000, "{1:" * 900]
    with pytest.raises(BadHealthCheck) as caught:
        observation.check_spec({"healthChecks": [{**SELECTED, **cel(text)} for text in texts]})
    assert str(caught.value).count("cel.current: ") == 3
    assert len(str(caught.value)) < 1500
    assert resident_bytes() - before < 32 * 2**20
