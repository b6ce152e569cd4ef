"""Which roles are printed for whom: pure, from who is registered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from approvals.deciding.kinds import DecidingKind
from approvals.deciding.table import KINDS
from approvals.rights.missing_rights import accounts_of, own_rules, words_of
from approvals.rights.needs import AUTHENTICATION, ImpersonationForm, NeededRule, Process, Registered, manifests, roles
from provisioner.api_groups import OWN_GROUP, RBAC_GROUP
from provisioner.values import AccessRequest, ObjectRef
from tests.support.folders import ROOT

ROBOT = "system:serviceaccount:ci:robot"
# What people write through Pratique, as themselves.
WRITTEN = (
    "bundledeployments",
    "approvalrules",
    "changewindows",
    "approvalpolicies",
    "externalchecks",
    "findingexceptions",
    "deputies",
)
KNOWN = Registered(
    people=frozenset({"rita", "alice", ROBOT, "system:admin"}),
    groups=frozenset({"platform", "system:masters", "system:authenticated"}),
    readers=frozenset({"rita"}),
    installers=frozenset({("shop", "installer"), ("quay", "installer"), ("shop", "other")}),
    sources=frozenset({ObjectRef("", "v1", "Secret", "shop", "pull"), ObjectRef("", "v1", "ConfigMap", "quay", "c")}),
    watched=frozenset({("apps", "deployments"), ("", "services"), ("", "configmaps")}),
)
LEGACY = ("impersonate",)
BEING = ("impersonate:serviceaccount",)


def rules_of(
    known: Registered, form: ImpersonationForm, process: Process, **more: Any
) -> dict[str, tuple[NeededRule, ...]]:
    return {one.namespace: one.rules for one in roles(known, form, [process], **more)}


def every_rule(known: Registered, form: ImpersonationForm, **more: Any) -> Iterator[NeededRule]:
    for role in roles(known, form, **more):
        yield from role.rules


def on(mode: str, *verbs: str) -> tuple[str, ...]:
    return tuple(f"impersonate-on:{mode}:{verb}" for verb in verbs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("role", "verbs"),
    [
        ("pratique-watch", {"list", "watch"}),
        ("pratique-worker", {"list"}),
        ("pratique-web", {"get"}),
        ("pratique-reader", {"get", "list", "watch"}),
    ],
)
def test_every_deciding_kind_is_in_the_roles_that_read_it(kind: type[DecidingKind], role: str, verbs: set[str]) -> None:
    documents = yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text())
    (found,) = (it for it in documents if (it["kind"], it["metadata"]["name"]) == ("ClusterRole", role))
    held = {verb for rule in found["rules"] if kind.plural in rule["resources"] for verb in rule["verbs"]}
    assert verbs <= held


@pytest.mark.parametrize("known", [KNOWN, Registered()], ids=["some", "nobody"])
@pytest.mark.parametrize("is_named", [True, False])
def test_S31_no_legacy_right_is_without_names(known: Registered, is_named: bool) -> None:
    for form in ImpersonationForm:
        for rule in every_rule(known, form, is_named=is_named):
            assert rule.names or "impersonate" not in rule.verbs
            assert all(rule.names) and "*" not in rule.verbs


@pytest.mark.parametrize("form", ImpersonationForm)
def test_S31_where_nobody_is_registered_no_role_names_anybody(form: ImpersonationForm) -> None:
    made = roles(Registered(), form)
    assert {role.process for role in made} == ({Process.WEB} if form is ImpersonationForm.CONSTRAINED else set())


@pytest.mark.parametrize("form", ImpersonationForm)
def test_S01_names_of_the_system_are_never_acted_as(form: ImpersonationForm) -> None:
    names = {name for rule in every_rule(KNOWN, form, is_named=True) for name in rule.names}
    assert not [name for name in names if name.startswith("system:")]
    assert KNOWN.left_out == ("system:admin", "system:authenticated", "system:masters")


def test_S31_web_writes_wishes_and_lists_roles_as_people_and_nothing_else() -> None:
    writes = ("create", "delete", "update")
    assert rules_of(KNOWN, ImpersonationForm.CONSTRAINED, Process.WEB) == {
        "": (
            NeededRule(AUTHENTICATION, ("groups", "users"), ("impersonate:user-info",)),
            NeededRule(OWN_GROUP, WRITTEN, on("serviceaccount", *writes)),
            NeededRule(OWN_GROUP, WRITTEN, on("user-info", *writes)),
            NeededRule(RBAC_GROUP, ("clusterrolebindings", "clusterroles"), on("user-info", "list")),
        ),
        "ci": (NeededRule(AUTHENTICATION, ("serviceaccounts",), BEING, ("robot",)),),
    }
    named = rules_of(KNOWN, ImpersonationForm.CONSTRAINED, Process.WEB, is_named=True)[""]
    assert NeededRule(AUTHENTICATION, ("users",), ("impersonate:user-info",), ("alice", "rita")) in named
    assert NeededRule(AUTHENTICATION, ("groups",), ("impersonate:user-info",), ("platform",)) in named
    assert rules_of(KNOWN, ImpersonationForm.LEGACY, Process.WEB) == {
        "": (NeededRule("", ("groups",), LEGACY, ("platform",)), NeededRule("", ("users",), LEGACY, ("alice", "rita"))),
        "ci": (NeededRule("", ("serviceaccounts",), LEGACY, ("robot",)),),
    }


def test_S31_the_worker_acts_as_installers_and_reads_what_sources_name() -> None:
    found = rules_of(KNOWN, ImpersonationForm.CONSTRAINED, Process.WORKER)
    assert found[""] == (
        NeededRule("*", ("*",), on("serviceaccount", "delete", "get", "list", "patch", "watch")),
        NeededRule(AUTHENTICATION, ("groups",), ("impersonate:user-info",), ("platform",)),
        NeededRule(AUTHENTICATION, ("users",), ("impersonate:user-info",), ("alice", "rita")),
    )
    assert found["shop"] == (
        NeededRule("", ("secrets",), on("user-info", "get"), ("pull",)),
        NeededRule(AUTHENTICATION, ("serviceaccounts",), BEING, ("installer", "other")),
    )
    assert found["quay"][0] == NeededRule("", ("configmaps",), on("user-info", "get"), ("c",))
    assert set(found) == {"", "shop", "quay"}


def test_S31_the_worker_acts_as_no_person_where_sources_name_nothing() -> None:
    known = Registered(
        people=KNOWN.people, groups=KNOWN.groups, readers=frozenset({ROBOT}), installers=KNOWN.installers
    )
    for form in ImpersonationForm:
        resources = {
            one for rules in rules_of(known, form, Process.WORKER).values() for it in rules for one in it.resources
        }
        assert not {"users", "groups"} & resources
        assert "ci" not in rules_of(known, form, Process.WORKER)


def test_S31_no_process_joins_the_halves_of_two_others() -> None:
    """Whom a process may be, and which requests it may make then, are rights apart: each pair of them counts.

    So no account that only signs in or asks stands beside the verbs that installers need.
    """
    known = replace(KNOWN, readers=frozenset({ROBOT}), for_accounts=KNOWN.sources)
    for process in Process:
        rules = [
            (role.namespace, rule)
            for role in roles(known, ImpersonationForm.CONSTRAINED, [process])
            for rule in role.rules
        ]
        being = {(place, name) for place, rule in rules if rule.verbs == BEING for name in rule.names}
        wide = [
            rule for _, rule in rules if any(verb.startswith("impersonate-on:serviceaccount") for verb in rule.verbs)
        ]
        if any(rule.resources != WRITTEN for rule in wide):
            assert being <= known.installers
    worker = rules_of(known, ImpersonationForm.CONSTRAINED, Process.WORKER)
    assert NeededRule("", ("secrets",), ("get",), ("pull",)) in worker["shop"]
    assert NeededRule("", ("configmaps",), ("get",), ("c",)) in worker["quay"]
    assert known.beyond == (("ci", "robot"),)


def test_S31_the_watch_sees_what_bundles_brought_as_its_installers() -> None:
    found = rules_of(KNOWN, ImpersonationForm.CONSTRAINED, Process.WATCH)
    assert found[""] == (
        NeededRule("", ("configmaps", "services"), on("serviceaccount", "list", "watch")),
        NeededRule("apps", ("deployments",), on("serviceaccount", "list", "watch")),
    )
    assert set(found) == {"", "shop", "quay"}


def test_the_order_does_not_depend_on_how_it_was_read() -> None:
    texts = set()
    for people in (["a", "b", "c"], ["c", "a", "b"]):
        known = Registered(
            frozenset(people), frozenset(reversed(people)), installers=frozenset({("y", "i"), ("x", "i")})
        )
        texts.add(yaml.safe_dump_all(manifests(roles(known, ImpersonationForm.LEGACY), accounts_of("pratique"))))
    assert len(texts) == 1


def test_each_role_is_bound_to_the_account_of_its_process() -> None:
    objects = manifests(roles(KNOWN, ImpersonationForm.CONSTRAINED), accounts_of("pratique"))
    names = [(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in objects]
    assert len(set(names)) == len(names)
    for role, binding in zip(objects[::2], objects[1::2], strict=True):
        process = role["metadata"]["name"].split("-")[1]
        assert binding["roleRef"]["name"] == role["metadata"]["name"] == binding["metadata"]["name"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": process, "namespace": "pratique"}]
        assert role["metadata"].get("namespace") == binding["metadata"].get("namespace")


def test_S31_no_shipped_role_holds_impersonate() -> None:
    found = []
    for path in [ROOT / "deploy/rbac.yaml", *(ROOT / "deploy/kubernetes").glob("*.yaml")]:
        for obj in filter(None, yaml.safe_load_all(path.read_text())):
            for rule in obj.get("rules") or []:
                verbs = rule.get("verbs", [])
                found += [verb for verb in verbs if verb.startswith("impersonate") or verb in ("*", "bind", "escalate")]
    assert found == []


def test_what_a_process_does_as_itself_is_its_shipped_role() -> None:
    assert NeededRule("authentication.k8s.io", ("tokenreviews",), ("create",)) in own_rules(Process.WEB)
    assert NeededRule("", ("namespaces",), ("get",), ("kube-system",)) in own_rules(Process.WEB), (
        "whose token it is (S19)"
    )
    own = own_rules(Process.WATCH)
    assert NeededRule("", ("namespaces",), ("get",), ("kube-system",)) in own
    assert {verb for rule in own for verb in rule.verbs} == {"get", "list", "watch"}


def test_the_words_name_what_is_missing_and_the_command() -> None:
    missing = [
        AccessRequest("impersonate", resource="serviceaccounts", namespace="shop", name=str(it)) for it in range(7)
    ]
    words = words_of("prod", Process.WORKER, missing)
    assert "the account of worker lacks permissions: impersonate serviceaccounts 0 in shop;" in words
    assert "and 2 more" in words
    assert "pratique-manage rights --cluster prod | kubectl apply -f -" in words
    assert "bind the role" not in words
    assert "bind the role pratique-web" in words_of(
        "prod", Process.WEB, [AccessRequest("get", OWN_GROUP, "bundledeployments")]
    )
    of_one = words_of("prod", Process.WORKER, missing, ("pratique", "all"))
    assert "pratique-manage rights --cluster prod --account pratique/all | kubectl apply -f -" in of_one
    assert words_of("prod", Process.WEB, []) == ""
    of_source = AccessRequest("get", resource="secrets", namespace="shop", name="pull")
    assert "bind the role" not in words_of("prod", Process.WORKER, [of_source]), "no shipped role has it"


def test_S31_what_a_chart_looks_up_is_named_whatever_its_group() -> None:
    looked_up = {ObjectRef("apps", "v1", "Deployment", "shop", "web"), ObjectRef("", "v1", "Namespace", "", "ci")}
    known = replace(KNOWN, sources=frozenset(looked_up), for_accounts=frozenset(looked_up))
    found = rules_of(known, ImpersonationForm.CONSTRAINED, Process.WORKER)
    assert NeededRule("apps", ("deployments",), ("impersonate-on:user-info:get",), ("web",)) in found["shop"]
    assert NeededRule("apps", ("deployments",), ("get",), ("web",)) in found["shop"]
    assert NeededRule("", ("namespaces",), ("get",), ("ci",)) in found[""]
