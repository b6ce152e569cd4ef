"""Whether an account may install a bundle, decided without a cluster from what a cluster would say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from provisioner.rbac import PolicyRule, RbacSubject, covers
from provisioner.rbac import rules as rbac_held
from provisioner.review.base.facts import Gap
from provisioner.review.preflight import account_rights as grants_of
from provisioner.review.preflight.account_rights import PreflightFacts, ResourceWord
from provisioner.review.preflight.answer import Preflight, preflight, questions
from provisioner.review.preflight.findings import as_text, as_yaml
from provisioner.review.rules import rule_text
from provisioner.values import AccessAnswer, Action, Manifest, ObjectRef, PlannedAction, Section, Severity
from tests.support.provisioner.contents import an_object
from tests.support.provisioner.roles import API, account, bound, cluster_role, group, role, rule, user

INSTALLER = RbacSubject("ServiceAccount", "installer", "shop")
KINDS = {
    ("policy", "v1", "PodDisruptionBudget"): ResourceWord("poddisruptionbudgets", True),
    ("db.example.com", "v1", "Database"): ResourceWord("databases", True),
    ("", "v1", "ConfigMap"): ResourceWord("configmaps", True),
    ("", "v1", "Namespace"): ResourceWord("namespaces", False),
    ("apps", "v1", "Deployment"): ResourceWord("deployments", True),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): ResourceWord("customresourcedefinitions", False),
    **{
        (API, "v1", kind): ResourceWord(plural, not plural.startswith("cluster"))
        for kind, plural in (
            ("Role", "roles"),
            ("ClusterRole", "clusterroles"),
            ("RoleBinding", "rolebindings"),
            ("ClusterRoleBinding", "clusterrolebindings"),
        )
    },
}
WRITES = rule("get create patch", "*", group="*")
# Writes everything but holds nothing that a role could grant beside that.
WRITER = (cluster_role("writer", WRITES), bound("writer", account("installer", "shop")))
SETTINGS = an_object("v1", "ConfigMap", "settings", "shop")
ORDER = an_object("shop.example.com/v1", "Order", "one", "shop")


def definition(*, served: bool = True) -> dict[str, Any]:
    spec = {
        "group": "shop.example.com",
        "scope": "Namespaced",
        "names": {"plural": "orders", "kind": "Order"},
        "versions": [{"name": "v1", "served": served}],
    }
    name = "orders.shop.example.com"
    return an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, spec=spec)


def given(*objects: dict[str, Any], held: tuple[dict[str, Any], ...] = (), **more: Any) -> PreflightFacts:
    facts = PreflightFacts(
        INSTALLER, tuple(map(Manifest, objects)), roles=held, kinds=KINDS, namespaces=frozenset({"shop"})
    )
    return replace(facts, **more)


def words_of(rule: str) -> str:
    """What the rule says to do."""
    text = rule_text(rule)
    assert text is not None
    return text.do


def found(*objects: dict[str, Any], held: tuple[dict[str, Any], ...] = (), **more: Any) -> Preflight:
    return preflight(given(*objects, held=held, **more))


def ids(answer: Preflight) -> set[str]:
    return {finding.rule for finding in answer.findings}


def missing(answer: Preflight) -> list[tuple[str, dict[str, list[str]]]]:
    return [(one.scope, one.rule.to_object()) for one in answer.missing]


def planned(obj: dict[str, Any], action: Action, **more: Any) -> dict[Any, PlannedAction]:
    ref = ObjectRef.of(obj)
    return {ref.identity: PlannedAction(ref, action, **more)}


def test_an_account_that_holds_what_is_needed_may_install() -> None:
    exact = role("shop", "exact", rule("get create patch", "configmaps", names="settings"))
    answer = found(SETTINGS, held=(exact, bound("exact", account("installer"), namespace="shop", kind="Role")))
    assert (answer.verdict, answer.findings, answer.missing, answer.excess) == (Severity.SAFE, (), (), ())
    assert all(step.grants[0].role.name == "exact" for step in answer.steps)


def test_each_missing_verb_is_named_and_the_rule_is_the_narrowest() -> None:
    reader = role("shop", "reader", rule("get", "configmaps"))
    answer = found(SETTINGS, held=(reader, bound("reader", account("installer"), namespace="shop", kind="Role")))
    assert ids(answer) == {"PRE-01"}
    narrow = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["settings"],
        "verbs": ["create", "patch"],
    }
    assert missing(answer) == [("shop", narrow)]
    assert answer.missing[0].reasons == ("needed to create ConfigMap shop/settings",)


@pytest.mark.parametrize(
    ("action", "verbs"),
    [
        (Action.CREATE, ["create", "get", "patch"]),
        (Action.UPDATE, ["get", "patch"]),
        (Action.NONE, ["get", "patch"]),
        (Action.ADOPT, ["get", "patch"]),
        (Action.REPLACE, ["create", "delete", "get", "patch"]),
    ],
    ids=str,
)
def test_the_verbs_are_those_of_what_is_planned(action: Action, verbs: list[str]) -> None:
    ((_, lacking),) = missing(found(SETTINGS, actions=planned(SETTINGS, action)))
    assert lacking["verbs"] == verbs


def test_what_goes_needs_the_right_to_delete_it() -> None:
    ((scope, lacking),) = missing(found(actions=planned(SETTINGS, Action.DELETE)))
    assert (scope, lacking["verbs"], lacking["resourceNames"]) == ("shop", ["delete", "get"], ["settings"])


def test_a_role_that_grants_what_the_account_lacks_is_an_escalation() -> None:
    answer = found(role("shop", "r", rule("get list", "secrets")), held=WRITER)
    assert ids(answer) == {"PRE-02", "PRE-10"}
    assert ("shop", rule("list", "secrets")) in [(scope, _sorted(one)) for scope, one in missing(answer)]


def _sorted(entry: dict[str, list[str]]) -> dict[str, list[str]]:
    return {key: entry[key] for key in ("verbs", "apiGroups", "resources", "resourceNames") if key in entry}


def test_with_the_missing_rules_nothing_is_missing() -> None:
    objects = (
        cluster_role("r", rule("get list", "secrets"), rule("get", urls="/metrics")),
        bound("r", account("robot", "shop")),
        role("shop", "own", rule("delete", "pods")),
        bound("own", account("robot"), namespace="shop", kind="Role"),
        cluster_role("sum", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
        bound("view", account("robot"), namespace="shop"),
        SETTINGS,
    )
    view = cluster_role("view", rule("get", "events"))
    answer = found(*objects, held=(view,))
    assert {"PRE-01", "PRE-02", "PRE-03", "PRE-04"} <= ids(answer)
    repaired = found(*objects, held=(view, *yaml.safe_load_all(as_yaml(answer))))
    assert (repaired.verdict, repaired.missing, repaired.excess) == (Severity.SAFE, (), ())


def test_no_missing_rule_can_be_left_out() -> None:
    objects = (
        cluster_role("r", rule("get list", "secrets")),
        bound("r", account("robot", "shop")),
        bound("view", account("robot"), namespace="shop"),
        SETTINGS,
    )
    view = cluster_role("view", rule("get", "events"))
    documents = list(yaml.safe_load_all(as_yaml(found(*objects, held=(view,)))))
    for document in documents:
        for index in range(len(document.get("rules", ()))):
            fewer = {**document, "rules": document["rules"][:index] + document["rules"][index + 1 :]}
            rest = [fewer if one is document else one for one in documents]
            assert found(*objects, held=(view, *rest)).verdict is Severity.BREAKING


@pytest.mark.parametrize("order", [1, -1], ids=["it-comes-first", "it-comes-last"])
def test_a_rule_that_lets_write_every_role_is_all_that_the_roles_of_its_bundle_need(order: int) -> None:
    strong = cluster_role("strong", rule("get", "pods"), rule("*", "clusterroles roles", group=API))
    others = (cluster_role("weak", rule("list", "secrets")), role("shop", "own", rule("get", urls="/metrics")))
    answer = found(*[strong, *others][::order], held=WRITER)
    assert missing(answer) == [("", {**rule("*", "clusterroles roles", group=API)})]


def test_holding_escalate_or_bind_is_enough() -> None:
    escalates = cluster_role("e", rule("escalate", "roles", group=API), rule("bind", "clusterroles", group=API))
    held = (*WRITER, escalates, bound("e", account("installer"), namespace="shop"))
    grants = (role("shop", "r", rule("list", "secrets")), bound("cluster-admin", account("x"), namespace="shop"))
    answer = found(*grants, held=(*held, cluster_role("cluster-admin", rule("*", "*", group="*"))))
    assert answer.missing == ()


def test_a_binding_names_the_narrow_way_out() -> None:
    admin = cluster_role("admin", rule("*", "*", group="*"))
    answer = found(bound("admin", account("x"), namespace="shop"), held=(*WRITER, admin))
    assert "PRE-03" in ids(answer)
    bind = {"apiGroups": [API], "resources": ["clusterroles"], "resourceNames": ["admin"], "verbs": ["bind"]}
    assert missing(answer) == [("shop", bind)]


def test_an_aggregating_role_needs_a_cluster_admin_or_escalate() -> None:
    sums = cluster_role("sum", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    answer = found(sums, held=WRITER)
    assert "PRE-04" in ids(answer)
    assert [one.rule.verbs for one in answer.missing] == [("escalate",)]
    boss = (
        cluster_role("boss", rule("*", "*", group="*"), rule("*", urls="*")),
        bound("boss", account("installer", "shop")),
    )
    assert "PRE-04" not in ids(found(sums, held=boss))


def test_what_only_roles_can_prove_is_unknown_where_nobody_could_read_them() -> None:
    sums = cluster_role("sum", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    grants = role("shop", "r", rule("list", "secrets"))
    handed_on = bound("admin", account("x"), namespace="shop")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1", "blockOwnerDeletion": True}
    owned = {**SETTINGS, "metadata": {**SETTINGS["metadata"], "ownerReferences": [owner]}}
    answer = found(sums, grants, handed_on, owned, roles=None)
    severities = {
        finding.rule: finding.severity
        for finding in answer.findings
        if finding.rule in ("PRE-02", "PRE-03", "PRE-04", "PRE-06")
    }
    assert severities == {"PRE-02": Severity.UNKNOWN, "PRE-04": Severity.UNKNOWN, "PRE-06": Severity.UNKNOWN}


def test_rights_that_the_bundle_gives_to_the_installer_count_for_what_comes_after() -> None:
    grants = (
        cluster_role("r", rule("get create patch", "configmaps")),
        bound("r", account("installer"), namespace="shop"),
    )
    may_bind = cluster_role("b", rule("escalate bind get create patch", "clusterroles rolebindings", group=API))
    held = (may_bind, bound("b", account("installer", "shop")))
    assert found(*grants, SETTINGS, held=held).missing == ()
    assert found(SETTINGS, *grants, held=held).missing != ()


def test_a_group_of_the_account_counts() -> None:
    held = (WRITER[0], bound("writer", group("system:serviceaccounts:shop")))
    assert found(SETTINGS, held=held).missing == ()


def test_a_namespace_has_to_exist_or_to_come_first() -> None:
    far, space = an_object("v1", "ConfigMap", "a", "far"), an_object("v1", "Namespace", "far")
    assert "PRE-05" in ids(found(far, held=WRITER))
    assert "PRE-08" in ids(found(far, space, held=WRITER))
    assert not {"PRE-05", "PRE-08"} & ids(found(space, far, held=WRITER))


def test_what_is_missing_in_a_namespace_that_does_not_exist_yet_is_granted_where_it_can_be() -> None:
    space, inside = an_object("v1", "Namespace", "new"), an_object("v1", "ConfigMap", "a", "new")
    answer = found(space, inside)
    assert {one.scope for one in answer.missing} == {""}
    assert any("comes with the bundle" in reason for one in answer.missing for reason in one.reasons)
    exists = found(space, inside, namespaces=frozenset({"new"}))
    assert {one.scope for one in exists.missing} == {"", "new"}


def test_a_kind_has_to_be_served_or_to_be_defined_before() -> None:
    assert "PRE-07" in ids(found(ORDER, held=WRITER))
    assert "PRE-07" in ids(found(definition(served=False), ORDER, held=WRITER))
    assert "PRE-08" in ids(found(ORDER, definition(), held=WRITER))
    assert not {"PRE-07", "PRE-08"} & ids(found(definition(), ORDER, held=WRITER))


@pytest.mark.parametrize(
    ("api", "variant", "words"),
    [
        pytest.param(
            ("policy/v1beta1", "PodDisruptionBudget"),
            "PRE-07a",
            "which Kubernetes no longer serves as of 1.25; it serves this kind in policy/v1",
            id="removed",
        ),
        pytest.param(("policy/v9", "Budget"), "PRE-07b", "an API of Kubernetes itself", id="not of this release"),
        pytest.param(("db.example.com/v2", "Database"), "PRE-07c", "in db.example.com/v1", id="in another version"),
        pytest.param(("shop.example.com/v1", "Order"), None, "Nobody serves Order", id="not defined"),
    ],
)
def test_why_nothing_serves_a_kind_is_said_with_what_to_do(
    api: tuple[str, str], variant: str | None, words: str
) -> None:
    (one,) = (
        finding for finding in found(an_object(*api, "one", "shop"), held=WRITER).findings if finding.rule == "PRE-07"
    )
    assert (one.evidence.get("variant"), words in one.message) == (variant, True), one.message
    do = words_of(variant or "PRE-07")
    assert ("First install whatever defines the kind" in do) == (variant is None)
    assert ("ask the author of the bundle" in do) == (variant == "PRE-07a")


def test_the_rights_on_a_custom_resource_use_the_plural_of_its_definition() -> None:
    lacking = [one["resources"] for _, one in missing(found(definition(), ORDER))]
    assert ["orders"] in lacking


def test_a_binding_to_a_role_that_is_not_there_is_too_early() -> None:
    binding = bound("later", account("x"), namespace="shop", kind="Role")
    assert "PRE-08" in ids(found(binding, role("shop", "later", rule("get", "pods")), held=WRITER))


def test_blocking_an_owner_is_a_right() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "blockOwnerDeletion": True}
    owned = {**SETTINGS, "metadata": {**SETTINGS["metadata"], "ownerReferences": [owner]}}
    answer = found(owned, held=WRITER)
    assert "PRE-06" in ids(answer)
    assert missing(answer)[0][1]["resources"] == ["deployments/finalizers"]
    assert answer.verdict is Severity.SAFE


@pytest.mark.parametrize(
    ("problem", "code", "is_said"),
    [
        pytest.param("exceeded quota: small", "forbidden", True, id="quota"),
        pytest.param('violates PodSecurity "restricted"', "forbidden", True, id="pod security"),
        pytest.param("spec.x: Invalid value", "invalid-object", True, id="validation"),
        pytest.param('User "x" cannot patch resource "configmaps"', "forbidden", False, id="rights are decided here"),
        pytest.param("exists already", "already-exists", False, id="somebody else's"),
    ],
)
def test_what_a_dry_run_refuses_is_said_if_it_is_not_about_rights(problem: str, code: str, is_said: bool) -> None:
    actions = planned(SETTINGS, Action.CREATE, problem=problem, problem_code=code)
    assert ("PRE-09" in ids(found(SETTINGS, held=WRITER, actions=actions))) is is_said


def test_a_cluster_admin_holds_too_much() -> None:
    boss = (
        cluster_role("cluster-admin", rule("*", "*", group="*")),
        bound("cluster-admin", account("installer", "shop")),
    )
    answer = found(SETTINGS, held=boss)
    (excess,) = [finding for finding in answer.findings if finding.rule == "PRE-10"]
    assert excess.severity is Severity.DANGEROUS
    assert "can do everything (cluster-wide)" in excess.message
    assert answer.verdict is Severity.SAFE


def test_what_everybody_holds_is_nobodys_excess() -> None:
    public = (cluster_role("public", rule("get", "nodes")), bound("public", group("system:authenticated")))
    assert found(held=public).excess == ()


@pytest.mark.parametrize(
    ("entry", "way"),
    [
        (rule("create", "pods"), "can create pods in shop"),
        (rule("create", "deployments", group="apps"), "can create deployments in shop"),
        (rule("create", "serviceaccounts/token"), "can request its token"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_who_else_can_act_as_the_installer_is_said(entry: dict[str, Any], way: str) -> None:
    held = (*WRITER, role("shop", "dev", entry), bound("dev", user("ann"), namespace="shop", kind="Role"))
    (usable,) = [finding for finding in found(held=held).findings if finding.rule == "PRE-11"]
    assert "User ann" in usable.message
    assert way in usable.message


def test_S07_who_may_impersonate_the_installer_is_who_installs_with_it() -> None:
    entry = rule("impersonate", "serviceaccounts")
    held = (*WRITER, role("shop", "dev", entry), bound("dev", user("ann"), namespace="shop", kind="Role"))
    assert "PRE-11" not in ids(found(held=held))


def test_who_holds_as_much_already_gains_nothing_from_the_installer() -> None:
    assert "PRE-11" not in ids(found(held=(*WRITER, bound("writer", user("ann")))))


def test_whoever_acts_as_an_installer_without_rights_gains_nothing() -> None:
    dev = (role("shop", "dev", rule("create", "pods")), bound("dev", user("ann"), namespace="shop", kind="Role"))
    assert "PRE-11" not in ids(found(held=dev))


def test_the_roles_of_a_cluster_are_sorted_out_once_for_all_questions() -> None:
    facts = given(SETTINGS, held=WRITER)
    answered = replace(facts, answers={one: AccessAnswer(True, "yes") for one in questions(facts)})
    assert answered.known is facts.known
    assert facts.known.roles_held(INSTALLER.identity) == {("", ("", "writer"))}


def test_the_api_servers_yes_counts_where_rbac_shows_none() -> None:
    facts = given(SETTINGS)
    asked = questions(facts)
    assert {one.verb for one in asked} == {"get", "create", "patch"}
    answers = {one: AccessAnswer(True, "webhook: yes") for one in asked}
    allowed = preflight(replace(facts, answers=answers))
    assert (allowed.verdict, allowed.missing) == (Severity.SAFE, ())
    assert {step.words for step in allowed.steps} == {"webhook: yes"}
    assert questions(replace(facts, answers=answers)) == []


def test_what_nobody_could_find_out_is_unknown_and_not_fine() -> None:
    assert preflight(PreflightFacts(INSTALLER, ())).verdict is Severity.UNKNOWN
    answer = found(gaps=(Gap("which namespaces exist", "forbidden", Section.PREFLIGHT),))
    assert (answer.verdict, ids(answer)) == (Severity.UNKNOWN, {"PRE-12"})


def unknowns(answer: Preflight) -> set[str]:
    return {finding.variant for finding in answer.findings if finding.rule == "PRE-12"}


def test_what_is_too_much_to_compare_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    dev = (role("shop", "dev", rule("create", "pods")), bound("dev", user("ann"), namespace="shop", kind="Role"))
    grants = role("shop", "r", rule("list", "secrets"))
    with monkeypatch.context() as patched:
        patched.setattr(grants_of, "MAX_MISSING", 0)
        assert unknowns(found(grants, held=WRITER)) == {"too-many-missing"}
    monkeypatch.setattr(rbac_held, "MAX_RULES", 0)
    undecided = {"excess-undecided", "users-undecided", "missing-undecided"}
    reader = role("shop", "reader", rule("get", "configmaps"))
    held = (reader, bound("reader", account("installer"), namespace="shop", kind="Role"), *dev)
    assert unknowns(found(SETTINGS, grants, held=held)) == {"cannot-tell", *undecided}


def test_the_rights_on_an_unknown_kind_are_unknown_where_nobody_was_asked() -> None:
    assert unknowns(found(ORDER, kinds=None)) == {"kind-unknown"}


def test_without_the_roles_what_a_binding_of_the_bundle_takes_is_said_as_needed() -> None:
    strong, weak = (cluster_role("strong", rule("escalate", "clusterroles", group=API)), cluster_role("weak", WRITES))
    answer = found(strong, weak, bound("weak", account("x"), namespace="shop"), roles=None)
    assert "has-to-bind" in {finding.variant for finding in answer.findings}


def test_without_the_roles_the_api_servers_no_is_still_a_no() -> None:
    facts = given(SETTINGS, roles=None)
    denied = {question: AccessAnswer(False) for question in questions(facts)}
    assert preflight(replace(facts, answers=denied)).verdict is Severity.BREAKING
    assert preflight(facts).verdict is Severity.UNKNOWN


def test_the_yaml_is_what_is_missing_under_its_reasons() -> None:
    answer = found(SETTINGS, definition())
    text = as_yaml(answer)
    assert "# needed to create ConfigMap shop/settings\n" in text
    documents = list(yaml.safe_load_all(text))
    assert [document["kind"] for document in documents] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    granted = [PolicyRule.from_object(entry) for document in documents for entry in document.get("rules", ())]
    assert covers(granted, [one.rule for one in answer.missing])


def test_S24_names_cannot_break_out_of_a_comment_or_a_line() -> None:
    hostile = an_object("v1", "ConfigMap", "a\n- verbs: ['*']\x1b[2J", "shop")
    answer = found(hostile)
    assert "\x1b" not in as_text(answer)
    (role_made, _) = yaml.safe_load_all(as_yaml(answer))
    assert len(role_made["rules"]) == 1
