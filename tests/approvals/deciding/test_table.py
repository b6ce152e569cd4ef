"""The roles in deploy/rbac.yaml name every kind of the table: who forgets one, or loses it in a merge, sees nothing."""

from __future__ import annotations

import pytest
import yaml

from approvals.deciding.kinds import DecidingKind
from approvals.deciding.table import KINDS
from provisioner.rbac.guarded_rights import OWN_RESOURCES
from tests.support.folders import ROOT

NEEDED = {
    "pratique-web": {"get"},
    "pratique-watch": {"list", "watch"},
    "pratique-worker": {"list"},
    "pratique-reader": {"get", "list", "watch"},
}
ROLES = {
    role["metadata"]["name"]: role["rules"] for role in yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text())
}


def verbs_on(role: str, resource: str) -> set[str]:
    return {verb for rule in ROLES[role] if resource in rule["resources"] for verb in rule["verbs"]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
def test_every_process_may_do_with_a_kind_what_it_needs(kind: type[DecidingKind]) -> None:
    missing = {role: verbs - verbs_on(role, kind.plural) for role, verbs in NEEDED.items()}
    assert not any(missing.values()), missing
    assert verbs_on("pratique-worker", f"{kind.plural}/status") == {"patch", "update"}
    assert kind.plural in OWN_RESOURCES
