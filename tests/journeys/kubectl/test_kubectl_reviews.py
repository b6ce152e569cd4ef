"""Reviews that people make with kubectl on a real API server: which count, and what the others are told."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
import yaml

from approvals import kubectl_reviews, services
from approvals.models import AuditEntry, KubectlReview, KubernetesIdentity, Request, Review, ReviewAdmission
from approvals.selectors import debts
from approvals.watch.own_kinds import SeenReviews
from provisioner.cli.kubectl import main
from provisioner.errors import ClusterError, Forbidden, InvalidObject, UnknownKind
from provisioner.values import Identity, ObjectRef
from tests.support.approvals.world import acting
from tests.support.folders import ROOT
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SEEDER, DeployedSite, binding, user_subject
from tests.support.kubernetes.endpoint import USERS
from tests.support.kubernetes.live import once_answered, until_served, wait_until
from tests.support.servers.registry import Registry

_numbers = itertools.count(1)
KIND = "BundleDeploymentReview"
POLICIES = [*yaml.safe_load_all((ROOT / "deploy/admission/reviews.yaml").read_text())]


def put_in_force(site: DeployedSite) -> None:
    """The shipped policies, and that they were seen a while ago."""
    for obj in POLICIES:
        site.api.apply(obj, field_manager=SEEDER, force=True)
    until_served(site.api, "core.rukpak.io", "v1alpha2", KIND)
    wait_until(lambda: _looked(site).problem == "", "the policies are in force")
    ReviewAdmission.objects.filter(cluster=site.cluster).update(since=_looked(site).looked_at - timedelta(minutes=1))


def count(site: DeployedSite) -> None:
    once_answered(lambda: kubectl_reviews.count(site.cluster.pk))


def _looked(site: DeployedSite) -> ReviewAdmission:
    count(site)
    return ReviewAdmission.objects.get(cluster=site.cluster)


@pytest.fixture
def reviewed(real_site: DeployedSite, registry: Registry, settings: Any) -> tuple[DeployedSite, Request]:
    """A request in review, which may be approved where its report is not shown."""
    settings.PRATIQUE = {**settings.PRATIQUE, "UNSEEN_SEVERITY": "critical"}
    put_in_force(real_site)
    name = f"{real_site.namespace}-app"
    deployment = real_site.prepare(name, bundles.image(registry, name, bundles.app("app", "1"), "1"))
    request = real_site.latest(deployment)
    assert request.state == "in_review", request.problem
    return real_site, request


def let_create(site: DeployedSite, who: str) -> None:
    """Create reviews, which alone decides nothing."""
    name = f"{site.namespace}-create-reviews"
    rule = {"apiGroups": ["core.rukpak.io"], "resources": ["bundledeploymentreviews"], "verbs": ["create"]}
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    site.api.apply({**about, "rules": [rule]}, field_manager=SEEDER)
    site.api.apply(binding(name, name, user_subject(who)), field_manager=SEEDER)
    site.until_may(Identity(who), "create", "bundledeploymentreviews", "core.rukpak.io")


def said(request: Request, by: str, **spec: Any) -> dict[str, Any]:
    who = next(user for user in USERS if user.name == by)
    groups = [*who.groups, "system:authenticated"]
    name = request.deployment.name
    told = {
        "requestRef": {"name": f"{name}-{request.number}"},
        "bundleDeploymentName": name,
        "decision": "Approve",
        "subjectDigest": request.subject_digest,
        "round": request.round,
        "reason": "read it",
        "reviewer": {"username": who.name, "uid": who.uid, "groups": groups},
        **spec,
    }
    about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": KIND}
    return {**about, "metadata": {"name": f"{name}-{by}-{next(_numbers)}"}, "spec": told}


def give(site: DeployedSite, obj: dict[str, Any], user: str) -> dict[str, Any]:
    """Create it as this user with kubectl, have the service see and count it; the condition that tells what came of it."""
    path = site.kubeconfig.parent / f"{obj['metadata']['name']}.yaml"
    path.write_text(yaml.safe_dump(obj))
    site.ctl("create", "-f", str(path), user=user)
    return answer(site, obj)


def answer(site: DeployedSite, obj: dict[str, Any]) -> dict[str, Any]:
    watch = SeenReviews(cluster=site.cluster)
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))
    count(site)
    live = site.api.get(ObjectRef.of(obj))
    assert live is not None
    (condition,) = live["status"]["conditions"]
    return dict(condition)


@pytest.mark.proof
def test_a_review_by_kubectl_approves_and_what_was_approved_is_applied(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    condition = give(site, said(request, "alice"), "alice")
    assert (condition["type"], condition["status"], condition["reason"]) == ("Counted", "True", "Counted")
    review = Review.objects.get(request=request)
    assert (review.channel, review.username, review.decision) == ("kubectl", "alice", "Approve")
    assert review.groups == ["platform", "system:authenticated"]
    assert review.user == site.people["alice"]
    site.work(request)
    assert request.state == "applied", request.problem


def test_S12_one_person_is_one_vote_by_kubectl_too_and_the_last_counts(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    assert give(site, said(request, "alice", decision="Deny"), "alice")["status"] == "True"
    assert Review.objects.counted().get(request=request).decision == "Deny"
    services.review(
        by=acting(site.people["alice"]),
        request_id=request.pk,
        decision="Approve",
        subject_digest=request.subject_digest,
        reason="after all",
        channel="browser",
    )
    assert Review.objects.counted().get(request=request).decision == "Approve"
    assert give(site, said(request, "alice", decision="RequestChanges"), "alice")["status"] == "True"
    counted = Review.objects.counted().get(request=request)
    assert (counted.decision, counted.channel) == ("RequestChanges", "kubectl")


def test_S29_a_review_that_nobody_could_keep_holds_up_no_other(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    poisoned = give(site, said(request, "alice", reason="a\0b"), "alice")
    assert (poisoned["status"], poisoned["reason"]) == ("False", "Invalid")
    assert give(site, said(request, "alice", decision="Deny"), "alice")["status"] == "True"


def test_deleting_a_review_withdraws_nothing_and_it_is_counted_once(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    obj = said(request, "alice", decision="Deny")
    give(site, obj, "alice")
    answer(site, obj)
    site.api.delete(ObjectRef.of(obj))
    count(site)
    assert Review.objects.counted().get(request=request).decision == "Deny"


def test_who_was_not_known_here_gets_an_account_of_their_own(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    assert give(site, said(request, "bob"), "bob")["status"] == "True"
    row = KubernetesIdentity.objects.get(cluster=site.cluster, username="bob")
    assert (row.authenticator, row.uid, row.groups) == ("token-review", "uid-bob", ["platform", "system:authenticated"])
    assert not row.user.has_usable_password()


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"subjectDigest": "sha256:" + "0" * 64}, "DigestMoved", "the request now has"),
        ({"round": 7}, "OldRound", "the request is in round 1, and this review is of round 7"),
    ],
    ids=["another digest", "another round"],
)
def test_a_review_of_something_else_does_not_count(
    reviewed: tuple[DeployedSite, Request], changes: dict[str, Any], reason: str, words: str
) -> None:
    site, request = reviewed
    condition = give(site, said(request, "alice", **changes), "alice")
    assert (condition["status"], condition["reason"]) == ("False", reason)
    assert words in condition["message"]
    assert not Review.objects.filter(request=request).exists()
    entry = AuditEntry.objects.get(verb="review.not_counted")
    assert (entry.actor, entry.via, entry.request_uid) == ("alice", "kubectl", str(request.uid))
    assert words in entry.facts["reason"]


def test_a_request_that_is_not_there_is_not_found(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    for number in ("99", f"0{request.number}"):
        other = {"requestRef": {"name": f"{request.deployment.name}-{number}"}}
        assert give(site, said(request, "alice", **other), "alice")["reason"] == "NotFound"
    assert not Review.objects.filter(request=request).exists()


@pytest.mark.thorough
def test_S24_a_reason_of_controls_counts_and_is_shown_as_escapes(
    reviewed: tuple[DeployedSite, Request], capsys: pytest.CaptureFixture[str]
) -> None:
    site, request = reviewed
    site.look_after(request.deployment)
    reason = "\x1b[2J\u202e\nCounted: True".ljust(4000, "\U0001f600")
    assert give(site, said(request, "alice", decision="RequestChanges", reason=reason), "alice")["status"] == "True"
    assert Review.objects.get(request=request).reason == reason
    words = ["history", request.deployment.name, "--kubeconfig", str(site.kubeconfig), "--context", "alice"]
    assert main(words) == 0
    assert main(["show", *words[1:]]) == 0
    shown = capsys.readouterr().out
    assert "RequestChanges by alice" in shown
    assert not {"\x1b", "\u202e"} & {*shown}


def said_last(site: DeployedSite) -> str:
    """The name of the review that was seen last."""
    return KubectlReview.objects.filter(cluster=site.cluster).latest("pk").name


@pytest.mark.thorough
def test_an_approval_must_name_what_is_deleted(reviewed: tuple[DeployedSite, Request], registry: Registry) -> None:
    site, request = reviewed
    site.approve(request.deployment)
    name = request.deployment.name
    files = {path: text for path, text in bundles.app("app", "2").items() if "01" not in path}
    site.prepare(name, bundles.image(registry, name, files, "2"))
    second = site.latest(request.deployment)
    wanted = services.to_acknowledge(second)
    assert wanted
    condition = give(site, said(second, "alice"), "alice")
    assert (condition["status"], condition["reason"]) == ("False", "Unacknowledged")
    assert wanted[0] in condition["message"]
    told = site.get("bundledeploymentreview", said_last(site))
    assert told["status"]["unacknowledged"] == wanted
    assert give(site, said(second, "alice", acknowledges=wanted), "alice")["status"] == "True"
    assert "unacknowledged" not in site.get("bundledeploymentreview", said_last(site))["status"]


def test_nobody_approves_their_own_change(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    site.let_approve("rita", request.deployment.name)
    let_create(site, "rita")
    assert give(site, said(request, "rita"), "rita")["reason"] == "SelfApproval"


def test_a_review_whose_report_is_too_serious_is_sent_to_the_browser(
    reviewed: tuple[DeployedSite, Request], settings: Any
) -> None:
    site, request = reviewed
    settings.PRATIQUE = {**settings.PRATIQUE, "UNSEEN_SEVERITY": "safe", "UNSEEN_DEPENDING_SEVERITY": ""}
    Request.objects.filter(pk=request.pk).update(weight=6)
    request.reports.update(worst="critical")
    condition = give(site, said(request, "alice"), "alice")
    assert condition["reason"] == "TooSerious"
    assert f"/requests/{request.uid}" in condition["message"]


@pytest.mark.proof
def test_S23_nobody_counts_while_a_policy_is_missing_or_changed_or_new(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    policy, binding = POLICIES[0], POLICIES[1]
    site.api.apply({**binding, "spec": {**binding["spec"], "validationActions": ["Audit"]}}, field_manager=SEEDER)
    condition = give(site, said(request, "alice"), "alice")
    assert condition["reason"] == "Unproved"
    assert (
        "ValidatingAdmissionPolicyBinding pratique-reviews is not the one that Pratique ships" in condition["message"]
    )

    # As it was, and still nobody knows who wrote while it was not.
    site.api.apply(binding, field_manager=SEEDER)
    wait_until(lambda: _looked(site).problem == "", "the policies are in force")
    condition = give(site, said(request, "alice"), "alice")
    assert condition["reason"] == "Unproved"
    assert "are known since" in condition["message"]

    site.api.delete(ObjectRef.of(policy))
    condition = give(site, said(request, "alice"), "alice")
    assert "the cluster has no ValidatingAdmissionPolicy pratique-reviews" in condition["message"]
    assert {entry.actor for entry in AuditEntry.objects.filter(verb="review.not_counted")} == {"unknown"}
    put_in_force(site)
    assert give(site, said(request, "alice"), "alice")["status"] == "True"


def test_S23_a_policy_that_was_changed_and_changed_back_is_noticed(reviewed: tuple[DeployedSite, Request]) -> None:
    site, request = reviewed
    binding = POLICIES[1]
    site.api.apply({**binding, "spec": {**binding["spec"], "validationActions": ["Audit"]}}, field_manager=SEEDER)
    site.api.apply(binding, field_manager=SEEDER)
    assert give(site, said(request, "alice"), "alice")["reason"] == "Unproved"
    assert not Review.objects.filter(request=request).exists()


def test_S12_a_service_account_counts_only_where_the_operator_lists_it(
    reviewed: tuple[DeployedSite, Request], settings: Any
) -> None:
    site, request = reviewed
    identity = Identity.of_service_account(site.namespace, "robot")
    about = {"name": "robot", "namespace": site.namespace}
    site.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}, field_manager=SEEDER)
    account = site.get("serviceaccount", "robot", "-n", site.namespace)
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{site.namespace}", "system:authenticated"]
    who = {"username": identity.username, "uid": account["metadata"]["uid"], "groups": groups}
    site.let_approve(identity.username, request.deployment.name)
    let_create(site, identity.username)
    token = site.ctl("create", "token", "robot", "-n", site.namespace).strip()
    site.ctl("config", "set-credentials", "robot", f"--token={token}")
    site.ctl("config", "set-context", "robot", "--cluster=pratique", "--user=robot")
    condition = give(site, said(request, "alice", reviewer=who), "robot")
    assert condition["reason"] == "NotAllowed"
    assert "machine account" in condition["message"]
    settings.PRATIQUE = {**settings.PRATIQUE, "MACHINE_REVIEWERS": [identity.username]}
    assert give(site, said(request, "alice", reviewer=who), "robot")["status"] == "True"


@pytest.mark.proof
@pytest.mark.parametrize("has_kubectl", [True, False], ids=["with kubectl", "without"])
def test_the_plug_in_decides_and_changes_as_the_caller(
    reviewed: tuple[DeployedSite, Request],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    has_kubectl: bool,
) -> None:
    site, request = reviewed
    monkeypatch.setenv("PATH", str(site.kubectl.parent) if has_kubectl else "")
    site.look_after(request.deployment)
    name = request.deployment.name

    def run(*words: str, user: str) -> int:
        return main([*words, "--kubeconfig", str(site.kubeconfig), "--context", user])

    assert run("show", name, user="alice") == 0
    assert request.subject_digest in capsys.readouterr().out
    assert run("deny", name, "--yes", user="carol") == 2
    assert 'User "carol" cannot create' in capsys.readouterr().err
    assert run("deny", name, user="alice") == 2
    assert "pass --yes" in capsys.readouterr().err
    assert run("deny", name, "--yes", "--reason", "not now", "--timeout", "0", user="alice") == 2
    assert "is created and not counted yet" in capsys.readouterr().out
    watch = SeenReviews(cluster=site.cluster)
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))
    count(site)
    review = Review.objects.get(request=request)
    assert (review.decision, review.username, review.reason) == ("Deny", "alice", "not now")

    assert run("pause", name, "--reason", "holiday", user="rita") == 0
    live = site.get("bundledeployment", name)
    assert live["spec"]["paused"] is True
    assert live["metadata"]["annotations"]["core.rukpak.io/pause-reason"] == "holiday"
    assert run("resume", name, user="rita") == 0
    assert run("rollback", name, "7", user="rita") == 2
    assert "has no revision 7 to go back to: nothing was ever applied" in capsys.readouterr().err
    live = site.get("bundledeployment", name)
    assert live["spec"]["paused"] is False
    left = {"core.rukpak.io/pause-reason", "core.rukpak.io/rollback-to"} & {*live["metadata"].get("annotations", {})}
    assert not left


def test_S23_what_only_stores_policies_proves_nothing(
    db: None, request: pytest.FixtureRequest, site: DeployedSite
) -> None:
    """The sandbox is no API server: it keeps admission policies and enforces none."""
    if "controlplane" in request.node.name:
        put_in_force(site)
        return
    for obj in POLICIES:
        try:
            site.api.apply(obj, field_manager=SEEDER)
        except (ClusterError, UnknownKind):
            break
    assert _looked(site).problem
    assert _looked(site).since is None


INCIDENT = {"decision": "BreakGlass", "reason": "the pager rings", "incident": "INC-7"}


def let_break_glass(site: DeployedSite, who: str) -> None:
    name = f"{site.namespace}-breaks-glass"
    rule = {"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"], "verbs": ["break-glass", "get"]}
    reading = {**rule, "resources": ["bundledeploymentrequests", "bundledeploymentreviews"], "verbs": ["get", "list"]}
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    site.api.apply({**about, "rules": [rule, reading]}, field_manager=SEEDER)
    site.api.apply(binding(name, name, user_subject(who)), field_manager=SEEDER)
    site.until_may(Identity(who), "break-glass", "bundledeployments", "core.rukpak.io")


def see_all(site: DeployedSite) -> None:
    """What the watch and a worker do; no page and no REST is served here."""
    watch = SeenReviews(cluster=site.cluster)
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))
    count(site)


def test_glass_is_broken_and_paid_for_with_kubectl_alone(
    reviewed: tuple[DeployedSite, Request], settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    site, request = reviewed
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2, "UNSEEN_SEVERITY": "safe"}
    name = request.deployment.name

    def run(*words: str, user: str) -> int:
        return main([*words, "--kubeconfig", str(site.kubeconfig), "--context", user])

    let_create(site, "carol")
    # The API server itself asks for the verb: approve is another one, and who may only create reviews may not.
    for user in ("carol", "alice"):
        with pytest.raises(Exception, match="does not have the verb break-glass"):
            give(site, said(request, user, **INCIDENT), user)
    for lacking, words in (
        ({"incident": ""}, "BreakGlass needs a reason and the number of the incident"),
        ({"reason": " "}, "BreakGlass needs a reason and the number of the incident"),
        ({"decision": "Approve"}, "only BreakGlass takes an incident"),
        ({"decision": "Object", "incident": None, "reason": ""}, "Object needs a reason"),
    ):
        spec = {name: text for name, text in {**INCIDENT, **lacking}.items() if text is not None}
        with pytest.raises(InvalidObject) as refused:
            site.api.create(said(request, "carol", **spec), dry_run=True)
        assert words in refused.value.server_words

    let_break_glass(site, "carol")
    assert run("break-glass", name, "--drill", user="carol") == 0
    assert "carol could break glass" in capsys.readouterr().out
    assert run("break-glass", name, "--drill", user="rita") in (1, 2)
    with pytest.raises(Forbidden) as forged:
        site.api.create(said(request, "carol", **INCIDENT), dry_run=True)  # by somebody else in her name
    assert "must be yours" in forged.value.server_words
    assert not debts.broken().exists()

    other = said(request, "carol", **INCIDENT, subjectDigest=f"sha256:{'0' * 64}")
    assert give(site, other, "carol")["status"] == "False"
    site.look_after(request.deployment)
    words = ["break-glass", name, "--yes", "--timeout", "0", "--reason", "the pager rings"]
    assert run(*words, user="carol") == 2
    assert "--incident is missing" in capsys.readouterr().err
    assert run(*words, "--incident", "INC-7", user="carol") == 2  # created, and nobody has counted it yet
    assert "not counted yet" in capsys.readouterr().out
    see_all(site)
    site.work(request)
    assert request.state == "applied", request.problem
    (broken,) = debts.owed()
    assert (broken.username, broken.channel, broken.incident) == ("carol", "kubectl", "INC-7")

    def condition(kind: str, called: str) -> dict[str, Any] | None:
        found = site.live(kind, called)["status"]["conditions"]
        return next((each for each in found if each["type"] == "ReviewOwed"), None)

    site.look_after(request.deployment)
    mirror = f"{name}-{request.number}"
    for kind, called in (("BundleDeployment", name), ("BundleDeploymentRequest", mirror)):
        owed = condition(kind, called)
        assert owed is not None and owed["status"] == "True" and "INC-7" in owed["message"]

    assert run("accept", name, "--yes", "--timeout", "0", user="alice") == 2
    see_all(site)
    assert not debts.owed().exists()
    site.look_after(request.deployment)
    assert condition("BundleDeployment", name) is None
    paid = condition("BundleDeploymentRequest", mirror)
    assert paid is not None and (paid["status"], paid["reason"]) == ("False", "Accepted")
