from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.schema import accepts_update, validate_crd
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd, crd_of, listed, mapped, obj, root, version

SCHEMA = "spec.validation.openAPIV3Schema"
SPEC = f"{SCHEMA}.properties[spec]"
SOUND = crd_of(obj(a=TEXT))
WEBHOOK: JsonDict = {
    "strategy": "Webhook",
    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "x", "namespace": "y"}}},
}


def refused(body: JsonDict) -> list[str]:
    return [str(error) for error in validate_crd(body)]


def test_a_sound_crd_is_accepted() -> None:
    assert refused(SOUND) == []
    assert accepts_update(SOUND, SOUND) == []


FRAME_FAULTS = {
    "no group": ({"group": ""}, "spec.group: Required value"),
    "a group without a dot": ({"group": "example"}, "should be a domain with at least one dot"),
    "an unknown scope": ({"scope": "Galaxy"}, 'spec.scope: Unsupported value: "Galaxy"'),
    "no kind": ({"names": {"plural": "things"}}, "spec.names.kind: Required value"),
    "capitals in plural": ({"names": {"plural": "Things", "kind": "Thing"}}, "spec.names.plural: Invalid value"),
    "one kind for both": (
        {"names": {"plural": "things", "kind": "Thing", "listKind": "Thing"}},
        "kind and listKind may not be the same",
    ),
    "no versions": ({"versions": []}, "must have exactly one version marked as storage version"),
    "twins": (
        {"versions": [version(schema=root(TEXT)), version(schema=root(WHOLE))]},
        "must contain unique version names",
    ),
    "a capital version": ({"versions": [version("V1", root(TEXT))]}, "spec.versions[0].name: Invalid value"),
    "no schema": ({"versions": [version()]}, "spec.versions[0].schema.openAPIV3Schema: Required value"),
    "preserve": (
        {"preserveUnknownFields": True},
        "spec.preserveUnknownFields: Invalid value: true: cannot set to true",
    ),
    "magic": ({"conversion": {"strategy": "Magic"}}, 'spec.conversion.strategy: Unsupported value: "Magic"'),
    "no webhook": ({"conversion": {"strategy": "Webhook"}}, "required when strategy is set to Webhook"),
    "idle": (
        {"conversion": {"strategy": "None", "webhook": WEBHOOK["webhook"]}},
        "should not be set when strategy is not set to Webhook",
    ),
    "unknown review versions": (
        {"conversion": {**WEBHOOK, "webhook": {**WEBHOOK["webhook"], "conversionReviewVersions": ["v9"]}}},
        "must include at least one of v1, v1beta1",
    ),
}


@pytest.mark.parametrize(("spec", "expected"), FRAME_FAULTS.values(), ids=FRAME_FAULTS)
def test_a_crd_with_a_fault_in_its_frame_is_refused(spec: JsonDict, expected: str) -> None:
    body = {**SOUND, "spec": {**SOUND["spec"], **spec}}
    assert any(expected in error for error in refused(body)), refused(body)


SCHEMA_FAULTS = {
    "no type": (obj(a={}), f"{SPEC}.properties[a].type: Required value: must not be empty for specified object fields"),
    "no items": ({"type": "array"}, f"{SPEC}.items: Required value: must be specified"),
    "items untyped": (listed({}), f"{SPEC}.items.type: Required value: must not be empty for specified array items"),
    "an unknown type": ({"type": "thing"}, f'{SPEC}.type: Unsupported value: "thing"'),
    "a broken pattern": ({**TEXT, "pattern": "("}, f'{SPEC}.pattern: Invalid value: "("'),
    "type nested": (
        {**obj(a=TEXT), "anyOf": [{"type": "object"}]},
        f"{SPEC}.anyOf[0].type: Forbidden: must be empty to be structural",
    ),
    "default nested": (
        {**obj(a=TEXT), "not": {"properties": {"a": {"default": "x"}}}},
        "must be undefined to be structural",
    ),
    "both": ({**obj(a=TEXT), "additionalProperties": TEXT}, "additionalProperties and properties are mutual exclusive"),
    "unique items": ({**listed(TEXT), "uniqueItems": True}, "uniqueItems cannot be set to true"),
    "an optional key": (
        listed(obj(k=TEXT), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        "must have a default or be a required property",
    ),
    "no keys": (
        listed(obj(k=TEXT), **{"x-kubernetes-list-type": "map"}),
        "must not be empty if x-kubernetes-list-type is map",
    ),
    "a set of objects": (listed(obj(k=TEXT), **{"x-kubernetes-list-type": "set"}), "must be atomic as item of a list"),
    "a set of nothing": (
        {**TEXT, "x-kubernetes-list-type": "set"},
        "must be array if x-kubernetes-list-type is specified",
    ),
    "preserve false": ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, "must be true or undefined"),
    "a text resource": (
        {"type": "string", "x-kubernetes-embedded-resource": True},
        "must be object if x-kubernetes-embedded-resource",
    ),
    "unsupported": ({**obj(a=TEXT), "patternProperties": {"a": TEXT}}, "patternProperties is not supported"),
    "a default of another type": ({**WHOLE, "default": "x"}, f'{SPEC}.default: Invalid value: "string"'),
    "a default with more fields": ({**obj(a=TEXT), "default": {"b": 1}}, "must not have unknown fields"),
    "a rule": (
        {**TEXT, "x-kubernetes-validations": [{"rule": "self.foo > 1"}]},
        "x-kubernetes-validations[0].rule: Invalid value",
    ),
    "a rule over no field": (
        {**obj(a=TEXT), "x-kubernetes-validations": [{"rule": "self.b == 'x'"}]},
        "undefined field 'b'",
    ),
    "a rule that is no question": ({**TEXT, "x-kubernetes-validations": [{"rule": "self"}]}, "must evaluate to a bool"),
    "a dear rule": (
        {
            **listed(listed(TEXT)),
            "x-kubernetes-validations": [{"rule": "self.all(x, x.all(y, self.all(z, z.all(w, w == y))))"}],
        },
        "estimated rule cost exceeds budget by factor of more than 100x",
    ),
}


@pytest.mark.parametrize(("spec", "expected"), SCHEMA_FAULTS.values(), ids=SCHEMA_FAULTS)
def test_a_crd_with_a_fault_in_its_schema_is_refused(spec: JsonDict, expected: str) -> None:
    assert any(expected in error for error in refused(crd_of(spec))), refused(crd_of(spec))


SOUND_SCHEMAS = {
    "int or string": {"x-kubernetes-int-or-string": True},
    "in its idiom": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "an open map": mapped(True),
    "junctors": {**obj("a", a=TEXT), "oneOf": [{"required": ["a"]}], "default": {"a": "x"}},
    "a set": {**listed(TEXT), "x-kubernetes-list-type": "set"},
    "a rule within bounds": {
        **listed(listed({**TEXT, "maxLength": 9}, maxItems=9), maxItems=9),
        "x-kubernetes-validations": [{"rule": "self.all(x, x.all(y, y == 'a'))"}],
    },
    "functions of Kubernetes alone": {
        **obj(a=TEXT),
        "x-kubernetes-validations": [{"rule": "!format.uuid().validate(self.a).hasValue()"}],
    },
}


@pytest.mark.parametrize("spec", SOUND_SCHEMAS.values(), ids=SOUND_SCHEMAS)
def test_a_schema_that_kubernetes_takes_is_not_refused(spec: JsonDict) -> None:
    assert refused(crd_of(spec)) == []


def test_a_bound_removed_above_a_rule_can_make_it_too_dear() -> None:
    def bounded(**more: Any) -> JsonDict:
        items = {
            **obj(a={**TEXT, "maxLength": 64}),
            "x-kubernetes-validations": [{"rule": "self.a.matches('^[a-z]+$')"}],
        }
        return crd_of(listed(items, **more))

    assert accepts_update(bounded(maxItems=16), bounded(maxItems=32)) == []
    assert any("exceeds budget" in str(error) for error in accepts_update(bounded(maxItems=16), bounded()))


def test_faults_that_were_there_before_are_not_held_against_an_update() -> None:
    old = crd_of(obj(a={}))
    assert refused(old)
    assert (
        accepts_update(
            {**old, "spec": {**old["spec"], "preserveUnknownFields": True}},
            {**old, "spec": {**old["spec"], "preserveUnknownFields": True}},
        )
        == []
    )
    loose = crd_of(listed(obj(k=TEXT), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}))
    assert accepts_update(loose, loose) == []
    assert accepts_update(SOUND, loose) != []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"scope": "Cluster"}, 'spec.scope: Invalid value: "Cluster": field is immutable'),
        ({"group": "example.org"}, 'spec.group: Invalid value: "example.org": field is immutable'),
        (
            {"names": {"plural": "things", "kind": "Thingy"}},
            'spec.names.kind: Invalid value: "Thingy": field is immutable',
        ),
        (
            {"names": {"plural": "thingies", "kind": "Thing"}},
            'spec.names.plural: Invalid value: "thingies": field is immutable',
        ),
        ({"preserveUnknownFields": True}, "spec.preserveUnknownFields: Invalid value: true"),
        (
            {"versions": [version("v2", root(TEXT))]},
            'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions',
        ),
    ],
    ids=lambda it: next(iter(it)) if isinstance(it, dict) else "",
)
def test_what_may_never_change_is_refused(change: JsonDict, expected: str) -> None:
    new = {**SOUND, "spec": {**SOUND["spec"], **change}}
    assert any(str(error).startswith(expected) for error in accepts_update(SOUND, new))


TAKEN_UPDATES = {
    "nothing served any more": (SOUND, crd(version(schema=root(TEXT), served=False))),
    "a version dropped": (
        crd(version("v1", root(TEXT)), version("v2", root(TEXT), storage=False)),
        crd(version("v1", root(TEXT))),
    ),
    "another storage version": (
        crd(version("v1", root(TEXT)), version("v2", root(TEXT), storage=False)),
        crd(version("v1", root(TEXT), storage=False), version("v2", root(TEXT))),
    ),
    "webhook to none": (crd_of(TEXT) | {"spec": {**crd_of(TEXT)["spec"], "conversion": WEBHOOK}}, crd_of(TEXT)),
    "pruning begins": ({**SOUND, "spec": {**SOUND["spec"], "preserveUnknownFields": True}}, SOUND),
}


@pytest.mark.parametrize(("old", "new"), TAKEN_UPDATES.values(), ids=TAKEN_UPDATES)
def test_what_hurts_but_is_taken_is_not_called_refused(old: JsonDict, new: JsonDict) -> None:
    assert accepts_update(old, new) == []


def test_names_of_a_crd_that_is_not_established_may_still_change() -> None:
    new = {**SOUND, "spec": {**SOUND["spec"], "scope": "Cluster"}}
    assert accepts_update({**SOUND, "status": {"conditions": []}}, new) == []


def test_a_community_group_needs_its_approval() -> None:
    body = crd_of(TEXT)
    body["spec"]["group"] = "x.k8s.io"
    body["metadata"] = {"name": "things.x.k8s.io"}
    assert any("api-approved.kubernetes.io" in error for error in refused(body))
    body["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://github.com/kubernetes/x"}
    assert refused(body) == []


def test_an_established_crd_does_not_get_a_broken_certificate() -> None:
    def with_ca(bundle: str) -> JsonDict:
        client = {**WEBHOOK["webhook"]["clientConfig"], "caBundle": bundle}
        conversion = {**WEBHOOK, "webhook": {**WEBHOOK["webhook"], "clientConfig": client}}
        return {**SOUND, "spec": {**SOUND["spec"], "conversion": conversion}}

    assert any("caBundle" in error.path for error in accepts_update(SOUND, with_ca("AA==")))
    assert accepts_update(with_ca("AA=="), with_ca("AQ==")) == []


def test_a_v1beta1_crd_is_read_with_its_own_defaults() -> None:
    old = {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "version": "v1",
            "names": {"plural": "things", "kind": "Thing"},
            "validation": {"openAPIV3Schema": root(TEXT)},
        },
    }
    assert accepts_update(old, SOUND) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"spec": None},
        {"spec": {"versions": [1, {}], "names": []}},
        crd({"name": 1, "schema": {"openAPIV3Schema": {"properties": 1}}}),
    ],
    ids=["nothing", "no spec", "odd versions", "odd schema"],
)
def test_a_crd_that_is_none_is_refused_and_nothing_is_changed(body: JsonDict) -> None:
    kept = copy.deepcopy(body)
    assert refused(body)
    accepts_update(body, SOUND)
    accepts_update(SOUND, body)
    assert body == kept


def test_a_number_that_no_server_reads_is_refused_as_it_stands() -> None:
    old, new = (crd_of({**WHOLE, "maximum": 10**400 + more}) for more in (0, 1))
    for made in (old, new):
        (error,) = accepts_update(old, made)
        assert error.path.endswith(".maximum") and "must be a number" in error.message


@pytest.mark.parametrize(
    ("rule", "is_refused"),
    [
        ("self.size() < 2", True),
        ("size(self) < 2", True),
        ("self.all(k, k != '')", True),
        ("'a' in self", True),
        ("self['a'] == 'x'", True),
        ("dyn(self).size() < 2", False),
        ("self.m.size() < 2", False),
        ("self.m.all(k, k != '')", False),
        ("'a' in self.m", False),
        ("[self].size() == 1", False),
    ],
)
def test_an_object_with_named_fields_is_no_map_in_cel(rule: str, is_refused: bool) -> None:
    texts = {"type": "string", "maxLength": 5}
    fields = {"a": texts, "m": {"type": "object", "maxProperties": 4, "additionalProperties": texts}}
    spec = {"type": "object", "properties": fields, "x-kubernetes-validations": [{"rule": rule, "message": "no"}]}
    found = validate_crd(crd(version(schema=root(spec))))
    assert any("compilation failed" in str(error) for error in found) is is_refused


def test_a_field_without_a_type_is_none_that_a_rule_can_name() -> None:
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    spec = {**obj(a=anything), "x-kubernetes-validations": [{"rule": "has(self.a)"}]}
    assert any("undefined field 'a'" in error for error in refused(crd_of(spec)))


@pytest.mark.parametrize("keyword", [{"allOf": []}, {"not": {}}, {"maxProperties": 0}], ids=str)
def test_an_empty_branch_counts_as_a_keyword_at_the_root(keyword: JsonDict) -> None:
    def with_status(**more: Any) -> JsonDict:
        return crd(version(schema={**root(TEXT), **more}, subresources={"status": {}}))

    assert any("only some fields are allowed at the root" in error for error in refused(with_status(**keyword)))
    assert refused(with_status(nullable=False, title="")) == []


@pytest.mark.parametrize(
    ("more", "is_taken"),
    [
        ({"nullable": False}, True),
        ({"enum": []}, True),
        ({"title": ""}, True),
        ({"items": {}}, False),
        ({"required": []}, False),
        ({"minimum": 0}, False),
    ],
)
def test_int_or_string_is_known_by_its_two_types_and_nothing_else(more: JsonDict, is_taken: bool) -> None:
    branches = [{"type": "integer", **more}, {"type": "string"}]
    assert (refused(crd_of({"x-kubernetes-int-or-string": True, "anyOf": branches})) == []) is is_taken
