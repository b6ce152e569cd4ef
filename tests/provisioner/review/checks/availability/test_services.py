"""Targets of autoscalers and monitors that are not there any more."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.availability import services
from provisioner.review.frame import mentioned
from provisioner.values import Action, ObjectRef
from tests.support.provisioner.contents import an_object, content_with, facts, findings_of, planned, web_workload

WEB = web_workload()
THERE = ObjectRef("apps", "v1", "Deployment", "shop", "web")
HPA = ("autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef")
VPA = ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "targetRef")
KEDA = ("keda.sh/v1alpha1", "ScaledObject", "scaleTargetRef")


def scaler(of: tuple[str, str, str] = HPA, **target: str) -> dict[str, Any]:
    api_version, kind, field = of
    return an_object(api_version, kind, "grow", "shop", spec={field: {"name": "web", **target}})


@pytest.mark.parametrize("of", [HPA, VPA, KEDA], ids=lambda one: one[1])
def test_an_autoscaler_loses_the_workload_that_goes(of: tuple[str, str, str]) -> None:
    made = scaler(of, apiVersion="apps/v1", kind="Deployment") if of != KEDA else scaler(of)
    kept, gone = planned(made, Action.NONE, before=made), planned(WEB, Action.DELETE, before=WEB)
    (found,) = findings_of(services.TARGETS_CHECK, kept, gone, previous=content_with(made, WEB))
    assert (found.variant, found.severity, found.ref) == ("gone", "dangerous", ObjectRef.of(made))


@pytest.mark.parametrize(
    ("exists", "variants"),
    [({THERE: True}, []), ({THERE: False}, ["absent"]), ({}, ["not-in-bundle"])],
    ids=["it has", "it has not", "nobody knows"],
)
def test_a_new_autoscaler_needs_a_workload_of_the_bundle_or_of_the_cluster(
    exists: dict[ObjectRef, bool], variants: list[str]
) -> None:
    added = planned(scaler(apiVersion="apps/v1", kind="Deployment"), Action.CREATE)
    assert [finding.variant for finding in findings_of(services.TARGETS_CHECK, added, exists=exists)] == variants
    assert mentioned(facts(added), [services.TARGETS_CHECK]) == [THERE]


@pytest.mark.parametrize("target", [{}, {"kind": "StatefulSet"}, {"kind": "Deployment", "apiVersion": "apps/v1beta2"}])
def test_a_target_is_a_kind_of_any_version(target: dict[str, str]) -> None:
    both = [planned(one, Action.CREATE) for one in (WEB, scaler(**target))]
    found = [finding.variant for finding in findings_of(services.TARGETS_CHECK, *both)]
    assert found == (["not-in-bundle"] if target.get("kind") == "StatefulSet" else [])


def test_what_a_policy_keeps_is_a_target_still() -> None:
    made = scaler()
    kept, left = planned(made, Action.NONE, before=made), planned(WEB, Action.ORPHAN, before=WEB)
    assert findings_of(services.TARGETS_CHECK, kept, left, previous=content_with(made, WEB)) == []
