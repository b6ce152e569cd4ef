"""Objects that run already and are planned as if they were adopted: one line for each present owner."""

from __future__ import annotations

from dataclasses import replace

from provisioner.review.checks.objects import objects
from provisioner.review.frame import report
from provisioner.values import Action, Finding, PlannedAction, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, planned

HELM = "the Helm release shop in prod"


def owned(name: str, owner: str) -> PlannedAction:
    obj = an_object("v1", "ConfigMap", name, "prod")
    return replace(planned(obj, Action.UPDATE, before=obj), owner=owner)


def found(*actions: PlannedAction) -> list[Finding]:
    content = content_with(*(one.after for one in actions if one.after is not None))
    given = facts(*actions, content=content)
    return [one for one in report(given, [objects.OWNERS_CHECK]).findings if one.rule == "OWN-03"]


def test_each_owner_has_one_line_with_the_number_of_its_objects() -> None:
    told = found(
        *(owned(f"m{at:02}", HELM) for at in range(27)),
        owned("x", "the Argo CD application web"),
        owned("y", "nobody by their marks (written by kubectl)"),
        owned("z", ""),
    )
    assert [(one.rule, one.severity) for one in told] == [("OWN-03", Severity.NOTABLE)] * 3
    words = {str(one.evidence["owner"]): one.message for one in told}
    assert words[HELM] == (
        "27 objects belong to the Helm release shop in prod: ConfigMap prod/m00, ConfigMap prod/m01 and 25 more. The "
        "report is as if this deployment adopted them; a request does so with spec.adoptHelmRelease: shop and "
        "spec.installNamespace: prod"
    )
    assert words["the Argo CD application web"].endswith("a request is stopped until that owner has let go")
    assert "spec.collisionProtection: IfNoController" in words["nobody by their marks (written by kubectl)"]
    assert {len(one.evidence["objects"]) for one in told} == {27, 1}


def test_of_very_many_objects_all_are_counted_and_some_named() -> None:
    (told,) = found(*(owned(f"m{at:04}", HELM) for at in range(objects.MAX_OWNED + 600)))
    assert told.message.startswith("1,100 objects belong to")
    assert "prod/m0001 and 1,098 more." in told.message
    assert len(told.evidence["objects"]) == objects.MAX_OWNED


def test_nobody_is_advised_to_adopt_what_belongs_to_kubernetes() -> None:
    obj = an_object("v1", "Namespace", "kube-system")
    (told,) = found(replace(planned(obj, Action.UPDATE, before=obj), owner="Kubernetes itself"))
    assert told.message == (
        "1 object belongs to Kubernetes itself: Namespace kube-system. The report is as if this deployment adopted it; "
        "no request does so: leave Kubernetes' own namespaces out of the bundle"
    )


def test_nothing_is_said_where_nothing_is_planned_for_others() -> None:
    assert found(owned("z", "")) == []
