"""What the rules of schemas and rights do with JSON that is nothing of the kind: an answer, or InvalidManifest.

Drawn: JSON of any shape, and real definitions, roles and bindings in which something was replaced by rubbish, left out
or put elsewhere. Nothing else may be raised, nothing given may change, and no single call may take long.
"""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner import rbac, schema
from provisioner.errors import InvalidManifest, TooManyRights
from provisioner.rbac import AccessRequest, EffectiveRules, PolicyRule
from provisioner.values import Identity
from tests.support.folders import CORPUS
from tests.support.provisioner.shapes import SPEC, WHOLE_CRD

SECONDS = 5.0
FUZZED = settings(deadline=None, max_examples=400, suppress_health_check=list(HealthCheck))
OURS = rbac.Ours("pratique", frozenset({("shop", "robot")}))
ROBOT = Identity.of_service_account("shop", "robot")
GROUP = "rbac.authorization.k8s.io"


def one_of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


KEYS = one_of(
    "apiVersion kind metadata name namespace labels spec status group names plural versions schema openAPIV3Schema type "
    "properties items required enum default additionalProperties allOf not oneOf nullable format pattern maxLength "
    "x-kubernetes-validations x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-int-or-string conversion "
    "rules verbs apiGroups resources roleRef subjects aggregationRule clusterRoleSelectors matchLabels "
    "matchExpressions storedVersions subresources"
)
WORDS = one_of(
    "object array string integer number boolean v1 v1beta1 a.b Namespaced Cluster ClusterRole RoleBinding Role set map "
    "CustomResourceDefinition apiextensions.k8s.io/v1 rbac.authorization.k8s.io/v1 self==oldSelf ^a int32 date *"
)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0, -1, 2**63, 1e308])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=6) | WORDS
NAMES = KEYS | st.text(max_size=4)


def holding(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5)


RUBBISH = st.recursive(SCALARS, holding, max_leaves=25)
ROLE = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "one", "labels": {"a": "b"}},
    "rules": [{"verbs": ["get", "*"], "apiGroups": ["", "apps"], "resources": ["pods", "secrets"]}],
    "aggregationRule": {
        "clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
    },
}
BINDING = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "one", "namespace": "shop"},
    "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "one"},
    "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "shop"}],
}


@cache
def real_crds() -> list[Any]:
    """Definitions of the corpus where it is there, small enough to be tried often, and one that has everything."""
    files = sorted(CORPUS.glob("crd-pairs/*/new.yaml"), key=lambda it: (it.stat().st_size, it.parent.name))[:40:4]
    return [WHOLE_CRD, *(next(filter(None, yaml.load_all(file.read_text(), yaml.CSafeLoader))) for file in files)]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    for key, entry in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(entry, dict | list):
            yield from places(entry)


def spoilt(wholes: Callable[[], list[Any]]) -> st.SearchStrategy[Any]:
    """One of `wholes` in which up to three places hold rubbish, or what stands at another place, or are gone."""

    @st.composite
    def draw_one(draw: st.DrawFn) -> Any:
        made = copy.deepcopy(draw(st.sampled_from(wholes())))
        for _ in range(draw(st.integers(1, 3))):
            known = list(places(made))
            container, key = known[draw(st.integers(0, len(known) - 1))]
            other, its = known[draw(st.integers(0, len(known) - 1))]
            match draw(st.sampled_from(["rubbish", "moved", "gone"])):
                case "rubbish":
                    container[key] = draw(RUBBISH)
                case "moved":
                    container[key] = copy.deepcopy(other[its])
                case _:
                    del container[key]
        return made

    return draw_one()


STEPS = (schema.admit,)
CRDS = RUBBISH | spoilt(real_crds)
NODES = RUBBISH | spoilt(lambda: [SPEC])
RIGHTS = RUBBISH | spoilt(lambda: [ROLE, BINDING])


def asked(ask: Callable[..., Any], *values: Any, **more: Any) -> Any:
    """The answer of one call, None where it refused what it was given as it should."""
    kept, began, found = copy.deepcopy((values, more)), time.process_time(), None
    with suppress(InvalidManifest, TooManyRights):
        found = ask(*values, **more)
    assert time.process_time() - began < SECONDS
    assert repr((values, more)) == repr(kept)
    return found


@pytest.mark.thorough
@FUZZED
@given(CRDS, CRDS)
def test_definitions_that_are_none(old: Any, new: Any) -> None:
    asked(schema.compare, old, new)
    asked(schema.accepts_update, old, new)
    asked(schema.validate_crd, new)
    asked(schema.kube_order, str(old))


@pytest.mark.thorough
@FUZZED
@given(spoilt(real_crds))
def test_a_definition_against_its_spoilt_self(new: Any) -> None:
    for whole in real_crds():
        if isinstance(new.get("metadata"), dict) and new["metadata"].get("name") == whole["metadata"]["name"]:
            asked(schema.compare, whole, new)
            asked(schema.compare, new, whole)
            asked(schema.accepts_update, whole, new)


@pytest.mark.thorough
@FUZZED
@given(NODES, RUBBISH, RUBBISH)
def test_schemas_that_are_none(node: Any, obj: Any, old: Any) -> None:
    for ask in STEPS:
        asked(ask, node, obj)
    asked(schema.admit, node, obj, old=old)
    asked(schema.admit_all, [schema.Candidate(node, obj, old)])


@pytest.mark.thorough
@FUZZED
@given(st.lists(RIGHTS, max_size=4), RIGHTS, RIGHTS)
def test_roles_and_bindings_that_are_none(objects: list[Any], one: Any, other: Any) -> None:
    known = [ROLE, BINDING, *objects]
    held = asked(rbac.effective_rules, ROBOT, known) or EffectiveRules(ROBOT, (), ())
    asked(rbac.effective_rules, ROBOT, one)
    asked(rbac.subjects, known)
    asked(rbac.RbacObjects.of, one)
    asked(rbac.role_rules, known, one)
    asked(rbac.may_write_role, held, one, old=other)
    asked(rbac.may_write_binding, held, one, known)
    asked(rbac.is_escalation, held, one, objects)
    asked(rbac.holders, known, AccessRequest("get", resource="pods", namespace="shop"))
    asked(rbac.escalating_rule, objects, AccessRequest("escalate", "rbac.authorization.k8s.io", "roles"))
    for ask in (rbac.binding_subjects, rbac.written_rules, rbac.is_aggregated, PolicyRule.from_object, rbac.plural_of):
        asked(ask, one)
    asked(rbac.risks, held)
    asked(rbac.collects, one, other)
    for roles in (known, one):
        objects_known = asked(rbac.RbacObjects.of, roles)
        if objects_known is not None:
            asked(rbac.PowerJudge(OURS, objects_known).powers_of, held.grants)
    asked(rbac.is_strong_name, str(one))
    asked(rbac.names_of_risk, str(one))
    asked(rbac.diff, EffectiveRules(ROBOT, (), ()), held)
    asked(rbac.grants, held, AccessRequest("get", resource="pods", namespace="shop"))


@pytest.mark.parametrize("odd", [None, True, 5, 1.5, "x", [], [{}]], ids=repr)
@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda odd: schema.compare(odd, WHOLE_CRD), id="compare old"),
        pytest.param(lambda odd: schema.compare(WHOLE_CRD, odd), id="compare new"),
        pytest.param(schema.validate_crd, id="validate_crd"),
        pytest.param(lambda odd: schema.accepts_update(odd, WHOLE_CRD), id="accepts_update old"),
        pytest.param(lambda odd: schema.accepts_update(WHOLE_CRD, odd), id="accepts_update new"),
        *(pytest.param(partial(ask, obj={}), id=ask.__name__) for ask in STEPS),
        pytest.param(rbac.binding_subjects, id="binding_subjects"),
        pytest.param(rbac.written_rules, id="written_rules"),
        pytest.param(rbac.is_aggregated, id="is_aggregated"),
        pytest.param(PolicyRule.from_object, id="PolicyRule.from_object"),
        pytest.param(lambda odd: rbac.role_rules([ROLE], odd), id="role_rules"),
        pytest.param(lambda odd: rbac.effective_rules(ROBOT, [odd]), id="effective_rules"),
    ],
)
def test_what_is_no_object_is_refused_with_what_was_found(ask: Callable[[Any], Any], odd: Any) -> None:
    found = {"NoneType": "nothing", "bool": "true or false", "str": "a text", "list": "a list"}
    with pytest.raises(InvalidManifest) as refused:
        ask(odd)
    assert f"expected an object, found {found.get(type(odd).__name__, 'a number')}" in str(refused.value)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"required": "a"}, 'required: Invalid value: "a": must be a list'),
        ({"properties": {"a": 5}}, "properties[a]: Invalid value: 5: must be an object"),
        ({"maxLength": "5"}, 'maxLength: Invalid value: "5": must be an integer'),
    ],
    ids=["a list", "an object", "a number"],
)
def test_a_schema_that_has_not_the_form_of_one_is_refused_by_place(node: Any, words: str) -> None:
    for ask in STEPS:
        with pytest.raises(InvalidManifest) as refused:
            ask(node, {})
        assert str(refused.value) == f"the schema: {words}"


def test_every_public_function_is_tried() -> None:
    """Those left out take values of this library only, which nobody makes of JSON but by the functions that are tried."""
    tried = Path(__file__).read_text()
    typed = {
        "allows",
        "allows_in",
        "binding_key_of",
        "bits_of",
        "breakdown",
        "compact",
        "covers",
        "holds",
        "minimal",
        "remainder",
        "role_key_of",
        "size",
    }
    for room in (schema, rbac):
        public = {name for name in room.__all__ if inspect.isfunction(getattr(room, name))}
        left = {name for name in public if f"{room.__name__.rpartition('.')[2]}.{name}" not in tried}
        assert left <= typed
