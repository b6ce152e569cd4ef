"""The RBAC that would allow what was refused: what an administrator copies grants that and nothing else."""

from __future__ import annotations

import yaml

from approvals import access
from provisioner.values import AccessRequest, Identity
from tests.support.approvals.fixtures import World

EVIL = "x}\nrules: []\n---\n{kind: ClusterRoleBinding, roleRef: {name: cluster-admin}"


def test_S24_a_name_from_a_spec_adds_nothing_to_the_rule_that_is_to_be_applied(env: World) -> None:
    question = AccessRequest("impersonate", resource="serviceaccounts", namespace=EVIL, name=EVIL)
    answer = access.ask_for(Identity(EVIL, ()), env.cluster, question, fresh=True)
    assert not answer.allowed
    role, binding = yaml.safe_load_all(answer.rule)
    assert (role["kind"], binding["kind"]) == ("Role", "RoleBinding")
    assert role["metadata"] == binding["metadata"] == {"name": f"pratique-impersonate-{EVIL}", "namespace": EVIL}
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"], "resourceNames": [EVIL]}
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == [EVIL]
