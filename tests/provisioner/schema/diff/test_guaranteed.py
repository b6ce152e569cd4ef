"""What the API server guarantees of every object: to ask for it breaks none, and not to ask for it changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.schema import compare
from provisioner.values import Severity
from tests.support.provisioner.shapes import TEXT, JsonDict, crd, obj, version

WHOLE = obj(spec=obj(a=TEXT))
DNS = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


def with_name(**limits: Any) -> JsonDict:
    return obj(spec=obj(a=TEXT), metadata={"type": "object", "properties": {"name": {**TEXT, **limits}}})


def embedded(*needed: str, **more: JsonDict) -> JsonDict:
    marks = {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    fields = {"apiVersion": TEXT, "kind": TEXT, **more}
    return obj(spec=obj(template={**obj(*needed, **fields), **marks}))


def found(old: JsonDict, new: JsonDict) -> list[tuple[str, Severity, str]]:
    """Rule, severity and path of what is worse than harmless."""
    made = compare(crd(version(schema=old)), crd(version(schema=new)))
    return [(one.rule, one.severity, ".".join(map(str, one.path))) for one in made if one.severity is not Severity.SAFE]


GUARANTEED = {
    "metadata is required": (WHOLE, {**WHOLE, "required": ["metadata"]}),
    "all three are": (WHOLE, {**WHOLE, "required": ["apiVersion", "kind", "metadata"]}),
    "none is any more": ({**WHOLE, "required": ["apiVersion", "metadata"]}, WHOLE),
    "three fields at least": (WHOLE, {**WHOLE, "minProperties": 3}),
    "in a branch": (WHOLE, {**WHOLE, "anyOf": [{"required": ["metadata"]}, {"required": ["spec"]}]}),
    "in every branch": (WHOLE, {**WHOLE, "allOf": [{"required": ["kind"]}]}),
    "a name that is not empty": (WHOLE, with_name(minLength=1)),
    "a name as all are": (WHOLE, with_name(minLength=1, maxLength=253, pattern=DNS)),
    "a name of any length": (with_name(), with_name(maxLength=253)),
    "the kind": (WHOLE, obj(spec=obj(a=TEXT), kind={**TEXT, "enum": ["Thing"]})),
    "a kind": (obj(spec=obj(a=TEXT), kind=TEXT), obj(spec=obj(a=TEXT), kind={**TEXT, "minLength": 1})),
    "the apiVersion": (WHOLE, obj(spec=obj(a=TEXT), apiVersion={**TEXT, "pattern": "^example[.]com/"})),
    "of an embedded resource": (embedded(), embedded("apiVersion", "kind")),
    "an embedded kind that is not empty": (embedded(), embedded(kind={**TEXT, "minLength": 1})),
}


@pytest.mark.parametrize(("old", "new"), GUARANTEED.values(), ids=GUARANTEED)
def test_what_every_object_has_breaks_none(old: JsonDict, new: JsonDict) -> None:
    assert found(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        pytest.param(WHOLE, {**WHOLE, "required": ["metadata", "spec"]}, "spec", id="another field"),
        pytest.param(WHOLE, with_name(maxLength=63), "metadata.name", id="a shorter name"),
        pytest.param(with_name(), with_name(pattern="^[a-z]+$"), "metadata.name", id="another name"),
        pytest.param(WHOLE, obj(spec=obj(a=TEXT), kind={**TEXT, "enum": ["Other"]}), "kind", id="another kind"),
        pytest.param(
            WHOLE, obj(spec=obj(a=TEXT), apiVersion={**TEXT, "pattern": "^other/"}), "apiVersion", id="another group"
        ),
        pytest.param(embedded(), embedded("metadata"), "spec.template.metadata", id="metadata of an embedded resource"),
        pytest.param(obj(spec=obj(kind=TEXT)), obj(spec=obj("kind", kind=TEXT)), "spec.kind", id="a field named kind"),
    ],
)
def test_what_not_every_object_has_breaks_some(old: JsonDict, new: JsonDict, path: str) -> None:
    assert [(severity, at) for _, severity, at in found(old, new)] == [(Severity.BREAKING, path)]
