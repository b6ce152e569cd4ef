"""Who holds existing objects is told of those that a viewer may get, and of no others (S09)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.access.sight import ReportSight, Sight, hidden_action, private_to_judge
from provisioner.errors import AlreadyExists
from provisioner.values import ObjectRef

HELM = "the Helm release shop in prod"


def reference(name: str, kind: str = "ConfigMap") -> dict[str, str]:
    return {"group": "", "version": "v1", "kind": kind, "namespace": "prod", "name": name}


def owned(*refs: dict[str, str]) -> dict[str, Any]:
    names = [f"{one['kind']} prod/{one['name']}" for one in refs]
    return {
        "rule": "OWN-03",
        "ref": None,
        "message": "what the rule means",
        "serverWords": f"{len(refs)} objects belong to {HELM}: {', '.join(names)}",
        "evidence": {"owner": HELM, "objects": names},
        "sources": list(refs),
        "path": [],
    }


def in_the_way(ref: dict[str, str]) -> dict[str, Any]:
    return {
        "ref": ref,
        "action": "adopt",
        "uid": "u",
        "resourceVersion": "7",
        "before": {"data": {"word": "hunter2"}},
        "after": {"data": {"word": "ours"}},
        "isProved": True,
        "warnings": ["hunter2"],
        "problem": "it exists already",
        "problemCode": AlreadyExists.code,
        "notes": ["hunter2"],
        "serverWords": "hunter2",
        "owner": HELM,
    }


class Seeing(Sight):
    """A viewer who may get objects of these kinds."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def may_see(self, ref: ObjectRef) -> bool | None:
        return ref.kind in self.kinds


CONFIG, SECRET = reference("settings"), reference("token", "Secret")
BODY = {"plan": {"actions": [in_the_way(CONFIG), in_the_way(SECRET)]}, "private": [owned(CONFIG, SECRET)]}


@pytest.mark.parametrize(
    ("kinds", "objects"),
    [
        pytest.param(["ConfigMap", "Secret"], [["ConfigMap prod/settings", "Secret prod/token"]], id="all"),
        pytest.param(["ConfigMap"], [["ConfigMap prod/settings"]], id="some"),
        pytest.param([], [], id="none"),
    ],
)
def test_S09_who_may_get_some_of_an_owner_s_objects_reads_of_these_alone(
    kinds: list[str], objects: list[list[str]]
) -> None:
    seen = ReportSight(Seeing(*kinds), BODY).private(BODY)
    assert [one["evidence"]["objects"] for one in seen] == objects
    if objects and "Secret" not in kinds:
        assert "1 object belongs to the Helm release shop in prod" in seen[0]["serverWords"]
        assert "token" not in str(seen)


def test_S09_of_what_is_in_the_way_everybody_may_know_that_it_is() -> None:
    told = hidden_action(in_the_way(CONFIG))
    assert (told["action"], told["problem"], told["isProved"]) == ("adopt", "it exists already", False)
    assert "hunter2" not in str(told)
    assert HELM not in str(told)


def test_S09_guards_and_limits_are_not_asked_about_what_is_in_the_way() -> None:
    assert private_to_judge(BODY) == []
    adopted = {**in_the_way(CONFIG), "problem": "", "problemCode": ""}
    assert private_to_judge({**BODY, "plan": {"actions": [adopted]}}) == BODY["private"]
