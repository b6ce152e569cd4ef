"""A check is given what of the cluster it declares, and runs again only where that differs between two looks (S09)."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from provisioner.builtin.facts import defaulted
from provisioner.review.base.facts import (
    Check,
    ClusterSurroundings,
    Facts,
    Listed,
    Listing,
    Reads,
    ReviewRule,
    RolesNotGiven,
    nothing,
)
from provisioner.review.frame import CHECKS, report
from provisioner.review.visibility.fact_views import Looks
from provisioner.review.visibility.server_fields import is_as_wished
from provisioner.values import Action, Finding, ObjectRef, Plan, PlannedAction, Section, Severity, worst_first
from tests.support.provisioner.contents import config_map, content_with, planned, web_workload

SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "cluster-admin", "uid": "u-9"},
    "rules": [],
}
PROBE = ReviewRule("TST-01", Section.OBJECTS, Severity.NOTABLE)
QUOTAS = Listing("", "v1", "ResourceQuota", "shop")


def stored(obj: dict[str, Any]) -> dict[str, Any]:
    """As a server holds it that nobody else writes to."""
    made = defaulted(obj)
    if made["kind"] == "Service":
        made["spec"] |= {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"]}
        made["spec"]["ipFamilyPolicy"] = "SingleStack"
    if made["kind"] == "Deployment":
        made["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "3"}
    return made


def upgrade(**live: Any) -> Facts:
    """A Deployment gets a new image; it, a ConfigMap and a Service are in the cluster as they were approved, but for
    `live`, which is written to the Deployment's spec."""
    old, new = ([web_workload(image=f"example.com/web:{tag}"), config_map(a="1"), SERVICE] for tag in (1, 2))
    actions = []
    for was, shall in zip(old, new, strict=True):
        before, after = copy.deepcopy(stored(was)), copy.deepcopy(stored(shall))
        if was["kind"] == "Deployment":
            before["spec"] |= live
            after["spec"] |= live
        action = Action.NONE if before == after else Action.UPDATE
        actions.append(planned(after, action, before=before, uid="u"))
    bundle = [planned(shall, Action.UPDATE, before=was) for was, shall in zip(old, new, strict=True)]
    around = ClusterSurroundings(lists={QUOTAS: Listed()})
    return Facts(
        content_with(*new),
        Plan(tuple(actions), "sha256:plan"),
        content_with(*old),
        live_rbac=(ROLE,),
        bundle=Plan(tuple(bundle), "sha256:bundle"),
        around=around,
    )


def counted(facts: Facts, runs: Counter[str]) -> tuple[Check, ...]:
    def counting(check: Check) -> Check:
        def changes(given: Facts) -> Iterator[Finding]:
            runs[check.name] += 1
            yield from check.changes(given)

        return replace(check, changes=changes)

    return tuple(map(counting, CHECKS))


def test_a_check_that_asks_nothing_of_the_cluster_runs_once_a_report() -> None:
    runs: Counter[str] = Counter()
    report(upgrade(), counted(upgrade(), runs))
    asking = {check.name for check in CHECKS if check.given}
    assert {name for name, count in runs.items() if count > 1} <= asking
    assert len(runs) == len(CHECKS)
    assert max(runs.values()) <= 3


def test_it_runs_once_more_where_somebody_wrote_to_an_object_of_ours() -> None:
    runs: Counter[str] = Counter()
    report(upgrade(replicas=4), counted(upgrade(), runs))
    quiet = [check.name for check in CHECKS if not check.given]
    assert {runs[name] for name in quiet} == {2}


def test_a_check_is_given_nothing_of_the_cluster_that_it_does_not_declare() -> None:
    seen: list[tuple[Any, ...]] = []

    def changes(given: Facts) -> Iterator[Finding]:
        service = next(one for one in given.plan.actions if one.ref.kind == "Service")
        is_given = not isinstance(given.live_rbac, RolesNotGiven)
        seen.append((given.live, given.around.lists, is_given, (service.before or {})["spec"].get("clusterIP")))
        yield from ()

    report(upgrade(), [Check("asks nothing", changes=changes)])
    assert seen == [({}, {}, False, None)]
    report(upgrade(), [Check("asks all", changes=changes, reads=frozenset(Reads), lists=lambda _: (QUOTAS,))])
    assert seen[1][1:] == ({QUOTAS: Listed()}, True, "10.96.0.7")


@pytest.mark.parametrize("check", CHECKS, ids=lambda it: it.name)
def test_what_asks_for_objects_or_lists_is_given_them(check: Check) -> None:
    is_asking = check.wants is not nothing or check.lists is not nothing
    assert (Reads.LIVE in check.given) is is_asking


def test_S09_defaults_are_no_values_of_the_cluster_and_what_somebody_wrote_is() -> None:
    plain = report(upgrade()).findings
    assert not [one.rule for one in plain if one.is_withheld and not one.sources]
    written = report(upgrade(template={"spec": {"hostNetwork": True, "containers": []}})).findings
    assert [one.rule for one in written if one.is_withheld and one.ref and one.ref.kind == "Deployment"]


def test_S09_what_the_server_chose_for_one_object_is_for_who_may_get_that_one() -> None:
    """A new Service asks for the node port that another one was given; somebody changed a ConfigMap beside it."""
    holder, asking = (
        {**SERVICE, "metadata": {"name": name, "namespace": name}, "spec": {**SERVICE["spec"], "type": "NodePort"}}
        for name in ("holder", "asking")
    )
    asking["spec"] = {**asking["spec"], "ports": [{"port": 80, "nodePort": 30080}]}
    live = stored(holder)
    live["spec"]["ports"] = [{**live["spec"]["ports"][0], "nodePort": 30080}]
    edited = {**config_map(a="1"), "data": {"a": "1", "b": "2"}}
    ref = ObjectRef.of(holder)
    stays = planned(live, Action.NONE, before=live, uid="u"), planned(holder, Action.NONE, before=holder)
    goes = PlannedAction(ref, Action.DELETE, "u", before=live), PlannedAction(ref, Action.DELETE, before=holder)
    for kept, wished in (stays, goes):
        for beside in ((), (planned(edited, Action.NONE, before=edited, uid="v"),)):
            plain = [planned(config_map(a="1"), Action.NONE, before=config_map(a="1"))] if beside else []
            facts = Facts(
                content_with(*([holder] if kept.after else []), asking, *(one.after for one in plain if one.after)),
                Plan((kept, planned(defaulted(asking), Action.CREATE), *beside), "sha256:plan"),
                content_with(holder, *(one.after for one in plain if one.after)),
                live_rbac=(ROLE,),
                bundle=Plan((wished, planned(asking, Action.CREATE), *plain), "sha256:bundle"),
            )
            (found,) = [finding for finding in report(facts).findings if finding.rule == "OBJ-10"]
            assert found.is_withheld
            assert "30080" not in found.message
            assert ref in found.sources


def test_a_service_sent_to_the_pods_of_a_job_is_told_by_the_labels_that_the_server_gives_them() -> None:
    template = {"metadata": {"labels": {"x": "y"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "m"}]}}
    job: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "migrate", "namespace": "shop"},
    }
    job["spec"] = {"template": template}
    live = defaulted(job)
    live["spec"]["template"]["metadata"]["labels"] = {"x": "y", "job-name": "migrate"}
    old, new = (
        {**SERVICE, "spec": {**SERVICE["spec"], "selector": selector}}
        for selector in ({"app": "web"}, {"job-name": "migrate"})
    )
    web = web_workload()
    facts = Facts(
        content_with(web, job, new),
        Plan(
            (
                planned(stored(web), Action.NONE, before=stored(web), uid="u"),
                planned(live, Action.NONE, before=live, uid="v"),
                planned(stored(new), Action.UPDATE, before=stored(old), uid="w"),
            ),
            "sha256:plan",
        ),
        content_with(web, job, old),
        bundle=Plan(
            tuple(planned(one, Action.UPDATE, before=was) for one, was in ((web, web), (job, job), (new, old))), "b"
        ),
    )
    assert [finding.severity for finding in report(facts).findings if finding.rule == "SV-04"] == [Severity.DANGEROUS]


def test_a_check_that_reads_roles_and_does_not_declare_it_crashes() -> None:
    def changes(given: Facts) -> Iterator[Finding]:
        if given.known_rbac:
            yield PROBE.at(None, "roles are read")

    (crash,) = [
        finding
        for finding in report(upgrade(), [Check("forgets", changes=changes)]).findings
        if finding.rule == "CRASHED"
    ]
    assert crash.evidence["error"] == "LookupError"
    assert Looks().given(upgrade(), frozenset()).salt == upgrade().salt == "u-9"


@pytest.mark.parametrize("spec", ["x", [1], 7, None, {"conversion": "x"}], ids=str)
@pytest.mark.parametrize("kind", ["v1 Namespace", "apiextensions.k8s.io/v1 CustomResourceDefinition"])
def test_promise_4_an_object_of_an_odd_form_ends_no_report(kind: str, spec: object) -> None:
    api_version, name = kind.split()
    odd = {"apiVersion": api_version, "kind": name, "metadata": {"name": "a", "labels": spec}, "spec": spec}
    live = {"apiVersion": api_version, "kind": name, "metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}}
    for action in (Action.UPDATE, Action.ADOPT):
        facts = Facts(
            content_with(odd),
            Plan((planned(odd, action, before=live, uid="u"),), "sha256:plan"),
            content_with(odd),
            bundle=Plan((planned(odd, Action.UPDATE, before=odd),), "sha256:bundle"),
        )
        assert report(facts).findings


def test_one_and_true_are_two_values() -> None:
    wished = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {"open": 1}}
    live = {**wished, "spec": {"open": True}}
    bundle = planned(wished, Action.UPDATE, before=wished)
    assert not is_as_wished(planned(live, Action.NONE, before=live, uid="u"), bundle)
    assert is_as_wished(planned(wished, Action.NONE, before=wished, uid="u"), bundle)


def test_S38_the_path_of_what_is_withheld_gives_it_no_place_among_others() -> None:
    ref = ObjectRef.of(config_map())
    public = PROBE.at(ref, "m is set", path=("data", "m"))
    for name in ("0" * 64, "f" * 64):
        hidden = [
            replace(PROBE.at(ref, "as it is", path=("data", key)), is_withheld=True, fingerprint=name)
            for key in ("alpha", "zulu")
        ]
        first, second = ([one.message for one in worst_first([public, each])] for each in hidden)
        assert first == second
