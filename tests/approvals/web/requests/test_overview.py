"""The first look at a request: what stops it, how much it touches, which rights frighten, who still can agree."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.cache import cache

from approvals.models import Outcome, Review
from approvals.web.requests.overview import (
    Step,
    blocked_words,
    blockers,
    failed_together,
    frights,
    left_together,
    plan_in_words,
    tiles,
)
from provisioner.review.base.record import action_from
from provisioner.review.output.headline import headline
from provisioner.values import Plan, count_objects
from tests.support.approvals import scene
from tests.support.approvals.changes import action, finding, planned
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, decide, text_of
from tests.support.provisioner.contents import an_object

CRD = {"group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition", "namespace": ""}
SECRET = {"group": "", "version": "v1", "kind": "Secret", "namespace": "shop", "name": "token"}


PLAIN = {"uid": "", "resourceVersion": "", "warnings": [], "notes": [], "serverWords": ""}


def refused(ref: dict[str, str], **more: Any) -> dict[str, Any]:
    """An action whose object the API server refuses."""
    words = f"the API server refused {ref['kind']} {ref['name']}: a stored version is missing"
    action = {
        "ref": ref,
        "action": "update",
        "before": {},
        "after": {},
        "isProved": True,
        "problemCode": "invalid-object",
    }
    return {**action, "problem": words, **more}


def body_of(*actions: dict[str, Any], findings: Any = ()) -> dict[str, Any]:
    return {"findings": list(findings), "plan": {"actions": list(actions)}}


def found(rule: str, section: str, name: str, **verdicts: str) -> dict[str, Any]:
    about = {
        "ref": {**CRD, "name": name},
        "verdicts": verdicts,
        "evidence": {"steps": [f"1. migrate it: kubectl get {name}", "2. wait"]},
    }
    return {"rule": rule, "section": section, "severity": "breaking", **about}


class SeesAll:
    """May know all."""

    def said_of(self, action: Any) -> str:
        return str(action["serverWords"])

    def steps_of(self, finding: Any) -> list[str]:
        return list(finding["evidence"]["steps"])


def test_what_is_refused_for_the_same_reason_is_one_blocker() -> None:
    names = [f"c{number}.example.com" for number in range(10)]
    (one,) = blockers(body_of(*(refused({**CRD, "name": name}) for name in names)))
    assert (one.what, one.names, one.more) == ("10 CRDs", names[:5], 5)
    assert "c0.example.com" not in one.words
    assert blocked_words([one]) == "As it stands this cannot be applied: 10 CRDs would be refused."


def test_a_refusal_is_told_by_the_rule_that_says_why_and_what_to_do_first() -> None:
    said = 'CustomResourceDefinition.apiextensions.k8s.io "{}" is invalid: status.storedVersions[0]: Invalid value'
    problem = "apply CustomResourceDefinition.apiextensions.k8s.io {}: the API server refuses it (Invalid)"
    names = ("a.example.com", "b.example.com")
    actions = [refused({**CRD, "name": it}, problem=problem.format(it), serverWords=said.format(it)) for it in names]
    why = [found("CRD-10", "crds", it, api="breaking") for it in names]
    beside = [found(rule, "crds", it, api="safe") for rule in ("CRD-11",) for it in names]
    general = [found("PRE-09", "preflight", it) for it in names]
    (one,) = blockers(body_of(*actions, findings=[*beside, *why, *general]), SeesAll())
    assert one.steps == [Step("1. migrate it", "kubectl get a.example.com"), Step("2. wait", "")]
    assert (one.what, one.words, one.query) == ("2 CRDs", "Version that is still stored is removed", "search=CRD-10")
    assert one.said == "status.storedVersions[0]: Invalid value"
    assert "status.storedVersions" in one.remedy
    denied = [{**one, "problemCode": "forbidden"} for one in actions]
    (other,) = blockers(body_of(*denied, findings=[*why, *general]))
    assert other.words == "the API server refuses it (Invalid)"
    (plain,) = blockers(body_of(*actions, findings=general))
    assert (plain.words, plain.query) == ("the API server refuses it (Invalid)", "search=PRE-09")


def of_kind(name: str, variant: str = "") -> dict[str, Any]:
    evidence = {"code": "unknown-kind", **({"variant": variant} if variant else {})}
    about = {"section": "preflight", "severity": "breaking", "verdicts": {}, "evidence": evidence}
    return {"rule": "PRE-07", "ref": {**CRD, "name": name}, **about}


def unserved(name: str, words: str) -> dict[str, Any]:
    problem = f"CustomResourceDefinition.apiextensions.k8s.io {name}: {words}"
    return refused({**CRD, "name": name}, problem=problem, problemCode="unknown-kind")


def test_what_kubernetes_removed_nobody_is_told_to_install() -> None:
    words = "the cluster serves no CustomResourceDefinition in apiextensions.k8s.io/v1beta1"
    names = ("a.example.com", "b.example.com")
    findings = [of_kind(it, "PRE-07a") for it in names]
    (one,) = blockers(body_of(*(unserved(it, words) for it in names), findings=findings))
    assert (one.what, one.words, one.query) == ("2 CRDs", words, "search=PRE-07")
    assert one.remedy.startswith("Take a newer version of the bundle")
    assert "ask the author of the bundle to publish one" in one.remedy
    assert "install" not in one.remedy
    (missing,) = blockers(body_of(unserved("a.example.com", words), findings=[of_kind("a.example.com")]))
    assert missing.remedy.startswith("First install whatever defines the kind")


def test_what_only_the_preflight_found_is_told_apart_by_what_to_do_about_it() -> None:
    names = {"a.example.com": "", "b.example.com": "PRE-07a", "c.example.com": "PRE-07a", "d.example.com": "PRE-07c"}
    found = blockers(body_of(findings=[of_kind(name, variant) for name, variant in names.items()]))
    assert [(one.what, one.words, one.query) for one in found] == [
        ("2 CRDs", "Kubernetes no longer serves this version", "search=PRE-07"),
        ("1 CRD", "Nothing serves this kind in this version", "search=PRE-07"),
        ("1 CRD", "Kind is served in other versions only", "search=PRE-07"),
    ]
    assert [one.remedy.split()[0] for one in found] == ["Take", "First", "First"]


def test_what_stops_it_is_told_on_every_tab_and_approving_is_the_second_thought(env: World, browse: Browse) -> None:
    body = {**scene.report_of("image-known-before"), "findings": []}
    body["plan"]["actions"].append(refused({**CRD, "name": "c.example.com"}, isProved=False))
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    for rest in ("", "/findings", "/changes", "/activity"):
        text = text_of(browse(env.ada).get(f"/requests/{request.uid}{rest}"))
        assert text.count("As it stands this cannot be applied: 1 CRD would be refused.") == 1, rest
    overview = text_of(browse(env.ada).get(f"/requests/{request.uid}"))
    assert overview.index("would be refused.") < overview.index('id="what"') < overview.index('id="plan"')
    assert "button-primary" not in overview.partition('class="request-bar"')[2].partition("</form>")[0]
    assert "not verified" not in overview


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(refused(SECRET), id="a Secret in the cluster"),
        pytest.param(refused({**SECRET, "kind": "ConfigMap"}, action="adopt"), id="an object of someone else"),
    ],
)
def test_S09_nothing_is_said_of_what_may_be_private(action: dict[str, Any]) -> None:
    assert blockers(body_of(action)) == []


def test_S09_steps_made_of_an_object_are_shown_to_who_may_get_it(env: World, browse: Browse) -> None:
    definition = an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "c.example.com", spec={})
    one = action(definition, {**definition, "spec": {"group": "x"}}, problem="refused", problemCode="invalid-object")
    about = {"rule": "CRD-10", "section": "crds", "severity": "breaking", "verdicts": {"api": "breaking"}}
    steps = {"steps": ["1. say so: kubectl patch crd c.example.com"]}
    request = planned(env, one, findings=[{**finding(one["ref"], []), **about, "evidence": steps}])
    client, path = browse(env.ada), f"/requests/{request.uid}"
    assert "kubectl patch crd" in text_of(client.get(path))
    cache.clear()
    env.kubernetes.closed = {"customresourcedefinitions"}
    hidden = text_of(client.get(path))
    assert "kubectl patch crd" not in hidden
    assert "Version that is still stored is removed" in hidden


ROLE = {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "Role", "namespace": "shop"}
MAP = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop"}
# Two objects change, and one of each other way; a hook is created, one Secret stands as it is or changes.
MIXED = (
    refused({**MAP, "name": "a"}),
    refused({**MAP, "name": "b"}, action="adopt"),
    refused({**MAP, "name": "c"}, action="create", before=None),
    refused({"group": "batch", "version": "v1", "kind": "Job", "namespace": "shop", "name": "d"}, action="create"),
    refused({**MAP, "name": "e"}, action="delete"),
    refused({**MAP, "name": "f"}, action="rerun"),
    refused({**MAP, "name": "g"}, action="none"),
    refused({**MAP, "name": "h"}, action="orphan"),
    refused(SECRET),
    refused({**SECRET, "name": "new"}, action="create", before=None),
    refused({**ROLE, "name": "v1"}, action="delete", returnsAs="v2"),
    refused({**ROLE, "name": "v2"}, action="create", before=None),
)


def test_every_place_counts_the_same_objects() -> None:
    body = body_of(*MIXED)
    words = "2 objects to change, 3 to create, 1 to delete, 1 to run again as a hook, 1 to rename"
    assert plan_in_words(body) == f"{words}, 1 Secret that exists, 1 kept, 1 unchanged"
    actions = [action_from({**PLAIN, **one}) for one in MIXED]
    assert headline([], Plan(tuple(actions), ""), hides_secrets=True)[0].startswith(f"{words}. 1 Secret exists:")
    hooks = {actions[3].ref.identity}
    assert "3 to create (1 as a hook)" in headline([], Plan(tuple(actions), ""), hooks=hooks)[0]
    shown = {one.words: one.number for one in tiles(body)}
    assert shown == {
        "created": 3,
        "changed": 1,
        "adopted": 1,
        "hooks run again": 1,
        "deleted": 1,
        "renamed": 1,
        "Secret that exists": 1,
        "kept": 1,
    }
    assert sum(count_objects(actions).values()) == len(actions) - 1
    assert plan_in_words(body_of(*({**one, "action": "none"} if one["ref"] == SECRET else one for one in MIXED))) == (
        plan_in_words(body)
    )


def test_the_pages_of_a_request_say_how_many_objects_change_in_the_words_of_the_headline(
    env: World, browse: Browse
) -> None:
    maps = [an_object("v1", "ConfigMap", name, "shop", data={"a": name}) for name in ("one", "two")]
    request = planned(env, action(maps[0], {**maps[0], "data": {}}), action(maps[1]))
    client = browse(env.ada)
    for path in ("", "/changes"):
        assert "1 object to change, 1 to create" in text_of(client.get(f"/requests/{request.uid}{path}"))


def test_what_frightens_is_named_with_its_verbs() -> None:
    (one,) = frights(scene.report_of("account-reads-every-secret")["findings"])
    assert (one.account, one.what, one.verbs, one.scope) == (
        "ServiceAccount shop/robot",
        "Secrets",
        "get, list, watch",
        "whole cluster",
    )


def test_every_verb_on_everything_names_all_that_frightens() -> None:
    rule = {"scope": "shop", "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    found = frights([{"evidence": {"subject": "User root", "added": [rule]}}])
    assert [(one.what, one.verbs) for one in found] == [
        (what, "every verb") for what in ("Secrets", "pods/exec", "Webhooks", "CRDs", "Nodes")
    ]


def test_an_approval_of_what_cannot_be_applied_is_asked_for_once_more(env: World, browse: Browse) -> None:
    body = {**scene.report_of("image-known-before"), "findings": [], "worst": "safe"}
    body["plan"]["actions"].append(refused({**CRD, "name": "c.example.com"}))
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    client = browse(env.ada)
    answer = decide(client, request, reason="read")
    assert answer.status_code == 422
    text = text_of(answer)
    assert "As it stands this cannot be applied: 1 CRD would be refused." in text
    assert 'value="ApproveAnyway"' in text
    assert not Review.objects.filter(request=request).exists()
    assert decide(client, request, reason="read", decision="ApproveAnyway").status_code == 302
    assert Review.objects.get(request=request).decision == "Approve"


def test_what_was_typed_to_approve_is_still_there_when_it_is_asked_once_more(env: World, browse: Browse) -> None:
    body = {**scene.report_of("image-known-before"), "findings": [], "worst": "breaking"}
    body["plan"]["actions"].append(refused({**CRD, "name": "c.example.com"}))
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    text = text_of(decide(browse(env.ada), request, reason="read", typed="barge"))
    assert 'value="ApproveAnyway"' in text
    assert re.search(r'name="typed"\s+value="barge"', text)


def test_the_button_to_approve_anyway_is_not_offered_at_first(env: World, browse: Browse) -> None:
    body = {**scene.report_of("image-known-before"), "findings": [], "worst": "safe"}
    body["plan"]["actions"].append(refused({**CRD, "name": "c.example.com"}))
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    text = text_of(browse(env.ada).get(f"/requests/{request.uid}"))
    assert "cannot be applied" in text
    assert "ApproveAnyway" not in text


def test_who_still_can_agree_is_named_to_who_may_read_roles(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    path = f"/requests/{afternoon['serious'].uid}"
    env.kubernetes.allow("bert", "get")
    text = " ".join(text_of(browse(env.bert).get(path)).split())
    assert '1 more approval needed</strong>, possible from <span class="mono">ada</span>' in text


def test_S09_who_still_can_agree_is_not_named_to_who_may_not_read_roles(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    env.kubernetes.allow("bert", "get")
    env.kubernetes.closed = {"clusterroles", "clusterrolebindings", "roles", "rolebindings"}
    text = " ".join(text_of(browse(env.bert).get(f"/requests/{afternoon['serious'].uid}")).split())
    assert "1 more approval needed" in text
    assert "possible from" not in text


def test_who_has_decided_is_named_on_every_tab(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    for rest in ("", "/findings", "/changes", "/activity"):
        text = " ".join(text_of(browse(env.ada).get(f"/requests/{afternoon['quiet'].uid}{rest}")).split())
        assert 'approved by <span class="mono">ada</span>' in text, rest
        assert text.count('aria-current="page"') >= 1


@pytest.mark.parametrize("tab", ["/findings", "/changes", "/activity"])
def test_every_tab_leads_those_who_may_decide_to_the_decision(
    tab: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("rita", "approve")
    offered = {}
    for person in (env.ada, env.bert, env.rita):
        text = text_of(browse(person).get(f"/requests/{afternoon['serious'].uid}{tab}"))
        links = text.partition('class="request-decide"')[2].partition("</p>")[0]
        offered[person.username] = re.findall(r'href="[^"]*#decision">([^<]*)…<', links)
    assert offered == {"ada": ["Approve", "Request changes", "Deny"], "bert": [], "rita": ["Request changes", "Deny"]}


def test_what_failed_for_the_same_reason_is_told_once_with_its_objects() -> None:
    def failed(name: str, words: str) -> Outcome:
        return Outcome(object=f"CRD {name}", state="failed", message=words)

    rows = [
        failed("a", "the quota is used up"),
        failed("b", "CRD b: a stored version is missing"),
        Outcome(object="CRD fine", state="done", message="the quota is used up"),
        failed("c", "CRD c: a stored version is missing"),
    ]
    found = [(one.words, one.objects) for one in failed_together(rows)]
    assert found == [("a stored version is missing", ["CRD b", "CRD c"]), ("the quota is used up", ["CRD a"])]


def test_what_was_not_tried_for_the_same_reason_is_told_once_with_its_objects() -> None:
    why = "not tried: phase config: ConfigMap shop/a failed"
    rows = [Outcome(object=f"Job {name}", state="skipped", message=why) for name in "ab"]
    rows.append(Outcome(object="ConfigMap shop/a", state="failed", message="refused"))
    assert [(one.words, one.objects) for one in left_together(rows)] == [(why, ["Job a", "Job b"])]
