"""How many pods stay while a change is rolled out."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.availability import replicas
from provisioner.values import Action
from tests.support.provisioner.contents import an_object, facts, judged_by, planned


def workload(kind: str, image: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    return an_object("apps/v1", kind, "web", "shop", spec={"template": template, **spec})


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        pytest.param("Deployment", {}, 0, id="a new pod comes first"),
        pytest.param(
            "Deployment", {"strategy": {"rollingUpdate": {"maxSurge": 0}}}, 1, id="none comes and none may go"
        ),
        pytest.param(
            "Deployment", {"replicas": 4, "strategy": {"rollingUpdate": {"maxSurge": 0}}}, 0, id="one of four may go"
        ),
        pytest.param("Deployment", {"replicas": 0, "strategy": {"type": "Recreate"}}, 0, id="there is none"),
        pytest.param("Deployment", {"strategy": {"rollingUpdate": {"maxUnavailable": "all"}}}, 0, id="no number"),
        pytest.param("StatefulSet", {}, 1, id="one that is replaced"),
        pytest.param("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, 0, id="one that stays"),
        pytest.param(
            "StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": 1}}}, 0, id="one that is spared"
        ),
    ],
)
def test_a_rollout_that_leaves_no_pod_is_said(kind: str, spec: dict[str, Any], count: int) -> None:
    old, new = workload(kind, "a:1", **spec), workload(kind, "a:2", **spec)
    found = judged_by(facts(planned(new, Action.UPDATE, before=old)), [replicas.REPLICAS_CHECK])
    assert [finding.rule for finding in found if finding.rule != "UNCLAIMED"] == ["AVL-05"] * count
