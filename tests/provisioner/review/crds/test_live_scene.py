"""Who else lays claim to a CRD or to its names."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, ServedKind
from provisioner.review.checks.objects import crds
from provisioner.review.crd_diff import differences
from provisioner.review.crds.live_scene import owned_by_others, refused_names, taken_in_cluster, twice_taken
from provisioner.schema.fields import FieldError
from provisioner.values import Action, ObjectRef, Severity
from tests.support.provisioner.contents import facts, planned
from tests.support.provisioner.shapes import TEXT, JsonDict, crd_of, obj

BREAKING, DANGEROUS, SAFE = Severity.BREAKING, Severity.DANGEROUS, Severity.SAFE
THING = crd_of(obj(a=TEXT))


def named(plural: str, *, group: str = "example.com", **names: Any) -> JsonDict:
    found = copy.deepcopy(THING)
    found["metadata"]["name"] = f"{plural}.{group}"
    found["spec"].update(group=group, names={"plural": plural, "kind": plural.title(), **names})
    return found


def marked(**metadata: Any) -> JsonDict:
    return {**THING, "metadata": {**THING["metadata"], **metadata}}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(named("others", kind="Thing"), "kind Thing", id="kind"),
        pytest.param(named("others", shortNames=["thing"]), "resource thing", id="short name is another's singular"),
        pytest.param(named("thing"), "resource thing", id="plural is another's singular"),
        pytest.param(named("others", kind="ThingList"), "kind ThingList", id="kind is another's listKind"),
        pytest.param(named("others", kind="Thing", group="example.org"), "", id="another group"),
    ],
)
def test_a_name_is_served_once_per_group(other: JsonDict, expected: str) -> None:
    found = list(twice_taken([THING, other]))
    assert {(finding.rule, finding.severity) for finding in found} == ({("CRD-07", BREAKING)} if expected else set())
    assert any(expected in finding.message for finding in found) or not expected


def test_a_crd_does_not_rival_itself() -> None:
    assert list(twice_taken([THING, THING])) == []
    own = ServedKind("example.com", "v1", "Thing", "things")
    assert list(taken_in_cluster(THING, [own])) == []


def test_a_kind_that_the_cluster_serves_already_is_taken() -> None:
    rival = ServedKind("example.com", "v1", "Thing", "gadgets")
    (found,) = taken_in_cluster(THING, [rival, ServedKind("example.org", "v1", "Thing", "gadgets")])
    assert (found.rule, found.severity, found.evidence["by"]) == ("CRD-07", BREAKING, ["gadgets.example.com"])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param({"shortNames": ["gd"]}, "resource gd of example.com", id="a short name is another's short name"),
        pytest.param({"shortNames": ["gadget"]}, "resource gadget", id="a short name is another's singular"),
        pytest.param({"singular": "gadgets"}, "resource gadgets", id="a singular is another's plural"),
        pytest.param({"shortNames": ["gg"]}, "", id="free"),
        pytest.param({"shortNames": ["Thing"]}, "", id="kinds are a space of their own"),
        pytest.param({"shortNames": "gd"}, "", id="names that are no list"),
    ],
)
def test_short_names_and_singulars_that_the_cluster_serves_already_are_taken(names: JsonDict, expected: str) -> None:
    rivals = [
        ServedKind("example.com", "v1", "Gadget", "gadgets", other_names=frozenset({"gadget", "gd"})),
        ServedKind("example.org", "v1", "Gadget", "gadgets", other_names=frozenset({"gg"})),
    ]
    found = list(taken_in_cluster(named("things", kind="Thing", **names), rivals))
    assert [finding.rule for finding in found] == (["CRD-07"] if expected else [])
    assert all(expected in finding.message and finding.evidence["by"] == ["gadgets.example.com"] for finding in found)


def test_names_that_the_api_server_did_not_accept_are_said() -> None:
    conditions = [{"type": "NamesAccepted", "status": "False", "message": '"Thing" is already in use'}]
    (found,) = refused_names({**THING, "status": {"conditions": conditions}})
    assert "already in use" in found.message
    assert list(refused_names({**THING, "status": {"conditions": [{"type": "NamesAccepted", "status": "True"}]}})) == []


def applied(manager: str, operation: str = "Apply", fields: JsonDict | None = None) -> JsonDict:
    owned = fields or {"f:spec": {"f:names": {}}}
    return marked(managedFields=[{"manager": manager, "operation": operation, "fieldsV1": owned}])


@pytest.mark.parametrize(
    ("old", "new", "is_owned"),
    [
        pytest.param(THING, marked(labels={"team": "a"}), False, id="labels that say nothing of it"),
        pytest.param(
            marked(annotations={"meta.helm.sh/release-name": "a"}),
            marked(annotations={"meta.helm.sh/release-name": "b"}),
            True,
            id="another release",
        ),
        pytest.param(marked(labels={"kapp.k14s.io/app": "1"}), THING, True, id="somebody else's mark"),
        pytest.param(
            marked(labels={"app.kubernetes.io/managed-by": "Helm"}),
            marked(labels={"app.kubernetes.io/managed-by": "Helm"}),
            False,
            id="the same mark",
        ),
        pytest.param(applied("flux"), THING, True, id="another applier of the spec"),
        pytest.param(applied("pratique"), THING, False, id="ourselves"),
        pytest.param(applied("cainjector", "Update"), THING, False, id="somebody who updates"),
        pytest.param(applied("flux", fields={"f:metadata": {"f:labels": {}}}), THING, False, id="labels only"),
    ],
)
def test_two_owners_of_a_crd_are_said(old: JsonDict, new: JsonDict, is_owned: bool) -> None:
    found = list(owned_by_others(old, new))
    assert [(finding.rule, finding.severity) for finding in found] == ([("CRD-09", DANGEROUS)] if is_owned else [])


def test_a_review_says_whose_names_and_crds_are_touched() -> None:
    rival = ServedKind("example.com", "v1", "Thing", "gadgets")
    ref = ObjectRef.of(THING)
    given = facts(
        planned(THING, Action.UPDATE), live={ref.identity: applied("flux")}, around=ClusterSurroundings(kinds=(rival,))
    )
    assert {finding.rule for finding in crds.DEFINITIONS_CHECK.changes(given)} == {"CRD-07", "CRD-09"}


def test_crd_diff_says_names_that_two_crds_of_a_file_want() -> None:
    other = named("others", kind="Thing")
    old, new = ({it["metadata"]["name"]: it for it in side} for side in ([THING], [THING, other]))
    assert {it.name: it.verdict for it in differences(old, new)} == {
        "things.example.com": BREAKING,
        "others.example.com": BREAKING,
    }
    assert {it.verdict for it in differences(new, new)} == {SAFE}


def test_a_new_crd_that_nobody_could_try_may_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    error = FieldError("spec.versions[0]", "it took too long", is_unknown=True)
    monkeypatch.setattr(crds, "validate_crd", lambda _: [error])
    (found,) = crds.judge_creation(ObjectRef.of(THING), THING)
    assert (found.rule, found.severity, found.variant) == ("CRD-00", Severity.UNKNOWN, "may-be-refused")
    assert found.message.endswith("spec.versions[0]: it took too long")


@pytest.mark.parametrize("action", [Action.CREATE, Action.UPDATE])
@pytest.mark.parametrize(
    ("rest", "is_judged"),
    [
        pytest.param({}, False, id="the API server took it"),
        pytest.param(
            {"is_proved": False, "problem_code": "invalid-object"}, True, id="it did not, and not all read why"
        ),
        pytest.param({"is_proved": False}, True, id="nobody asked it"),
    ],
)
def test_a_definition_is_not_judged_again_where_the_api_server_took_it(
    action: Action, rest: dict[str, Any], is_judged: bool
) -> None:
    bad = copy.deepcopy(THING)
    bad["spec"]["versions"][0]["storage"] = False
    live = {ObjectRef.of(THING).identity: THING} if action is Action.UPDATE else {}
    given = facts(planned(bad, action, **rest), live=live)
    assert any(found.rule == "CRD-19" for found in crds.DEFINITIONS_CHECK.changes(given)) is is_judged
