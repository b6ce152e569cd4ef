"""Who holds existing objects is told of those that a viewer may get, and of no others (S09)."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from approvals.access.sight import ReportSight, Sight, hidden_action, private_to_judge, withheld
from approvals.api import report_parts as rest
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

    def may_see(self, ref: ObjectRef, *, widest_first: bool = True) -> bool | None:
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


@pytest.mark.parametrize("names", [("one", "two"), ("two", "one")], ids=["a live one first", "a new one first"])
def test_S09_what_was_found_in_several_objects_is_for_who_may_get_them_all(names: tuple[str, str]) -> None:
    one = reference(names[0])
    places = [{"object": f"ConfigMap prod/{name}", "evidence": {"was": "hunter2"}} for name in names]
    found = {"rule": "OBJ-02", "ref": one, "message": "both", "serverWords": "", "evidence": {"all_places": places}}
    live = {"ref": reference("one"), "action": "update", "before": {}}
    body = {"plan": {"actions": [live, {**live, "ref": reference("two"), "before": None}]}}
    assert ReportSight(Seeing("ConfigMap"), body).finding(found) == found
    for may in (lambda ref, **_: False, lambda ref, **_: ref.name == one["name"]):
        sight = Seeing()
        sight.may_see = may  # type: ignore[method-assign]  # one viewer sees nothing, the next one object
        assert "hunter2" not in str(ReportSight(sight, body).finding(found))


def test_S09_of_what_is_in_the_way_everybody_may_know_that_it_is() -> None:
    told = hidden_action(in_the_way(CONFIG))
    assert (told["action"], told["problem"], told["isProved"]) == ("adopt", "it exists already", False)
    assert "hunter2" not in str(told)
    assert HELM not in str(told)


def test_S09_guards_and_limits_are_not_asked_about_what_is_in_the_way() -> None:
    assert private_to_judge(BODY) == []
    adopted = {**in_the_way(CONFIG), "problem": "", "problemCode": ""}
    assert private_to_judge({**BODY, "plan": {"actions": [adopted]}}) == BODY["private"]


def test_S09_of_a_hidden_secret_no_rule_is_told_not_even_beside_another() -> None:
    secret = reference("keys", "Secret")
    evidence = {"said_with": {"UNJUDGED": {"message": "hunter2"}}}
    kept = {"path": ["data"], "message": "hunter2", "serverWords": "", "variant": "replaced", "notes": ["hunter2"]}
    found = {"rule": "IMM-01", "ref": secret, "evidence": evidence, "also": ["UNJUDGED"], "verdicts": {}, **kept}
    told = withheld(found)
    assert not [word for word in ("hunter2", "UNJUDGED", "IMM-01", "replaced", "data") if word in str(told)]


@pytest.mark.parametrize("fields", [["spec.a"], ["spec.a", "spec.b"]])
def test_S09_over_rest_how_many_fields_differ_is_told_with_them_alone(
    monkeypatch: pytest.MonkeyPatch, fields: list[str]
) -> None:
    monkeypatch.setattr(rest, "Sight", lambda *_, **__: Seeing())
    ref, words = reference("one"), {"message": "as it is", "serverWords": "hunter2", "path": []}
    found = {"rule": "UNCLAIMED", "ref": ref, "evidence": {"fields": fields}, "section": "objects", **words}
    found |= {"severity": "dangerous", "verdicts": {}, "isNew": True, "fingerprint": "f", "sources": []}
    body = {"findings": [found], "private": [], "unjudged": len(fields), "plan": {"actions": []}}
    request, report = MagicMock(), MagicMock(body=body)
    assert rest.visible_report(MagicMock(), request, report)["unjudged"] == 1
