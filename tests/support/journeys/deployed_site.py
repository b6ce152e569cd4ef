"""A whole Pratique in one process on a real cluster: rows, steps and people, without queue and threads."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from approvals import services
from approvals.audit import Actor
from approvals.ledger import claims, pivots
from approvals.ledger.pivots import SpecWriter
from approvals.lifecycle import WORKABLE
from approvals.models import BundleDeployment, Cluster, KubernetesIdentity, Policy, Request
from approvals.steps.advance import advance
from approvals.steps.mirroring.mirror import look_after
from approvals.working import Work
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests.support.approvals.world import acting
from tests.support.folders import ROOT
from tests.support.kubernetes import live
from tests.support.patience import scaled

# Their names and groups are those of the control plane's users, so that kubectl can be used as the same people.
PEOPLE = {"alice": "platform", "carol": "developers", "rita": "requesters"}
SEEDER = "journey"
SERVICE = Identity("pratique")
MAX_LOOKS = 20


@dataclass
class DeployedSite:
    """`api` is the cluster's admin, for looking at what was really applied."""

    cluster: Cluster
    api: Api
    namespace: str
    kubectl: Path
    kubeconfig: Path
    people: dict[str, User] = field(default_factory=dict)

    def submit_spec(self, name: str, *sources: Mapping[str, Any], **options: Any) -> BundleDeployment:
        """Rita asks for these sources, in a new deployment or in place of what the known one wishes for."""
        spec = {
            "installNamespace": self.namespace,
            "serviceAccountName": "installer",
            "sources": [dict(source) for source in sources],
            **options,
        }
        known = BundleDeployment.objects.filter(cluster=self.cluster, name=name, gone_at__isnull=True).first()
        if known:
            return services.change_deployment(
                by=acting(self.people["rita"]), deployment=known, spec=spec, generation=known.generation, via="browser"
            )
        return services.create_deployment(
            by=acting(self.people["rita"]), cluster=self.cluster, name=name, spec=spec, labels={}, via="browser"
        )

    def work(self, request: Request | None = None) -> None:
        """What the workers do, until nothing is left to do; `request` is read anew then."""
        before = None
        for _ in range(MAX_LOOKS):
            rows = list(Request.objects.filter(state__in=WORKABLE).values_list("pk", "state", "round"))
            if rows == before:
                break
            before = rows
            for pk, _, _ in rows:
                advance(pk)
        else:
            raise AssertionError(f"the machine does not come to rest: {before}")
        if request is not None:
            request.refresh_from_db()

    def after_work(self, deployment: BundleDeployment) -> Request:
        """The latest request, after what the workers do."""
        self.work()
        return self.latest(deployment)

    def prepare(self, name: str, *sources: Mapping[str, Any], **options: Any) -> BundleDeployment:
        """The same as `wish`, and what the workers do then: its request is in review, if all is well."""
        deployment = self.submit_spec(name, *sources, **options)
        self.work()
        return deployment

    def ref(self, kind: str, name: str) -> ObjectRef:
        """An object of the station's namespace, or one of our own kinds."""
        if kind.startswith("BundleDeployment"):
            return ObjectRef("core.rukpak.io", "v1alpha2", kind, "", name)
        return ObjectRef("apps" if kind in ("Deployment", "StatefulSet") else "", "v1", kind, self.namespace, name)

    def live(self, kind: str, name: str) -> Any:
        """The object as it is in the cluster; None where it is not there."""
        return self.api.get(self.ref(kind, name))

    def latest(self, deployment: BundleDeployment) -> Request:
        found = deployment.requests.order_by("-number").first()
        assert found is not None
        return found

    def said(self, request: Request) -> str:
        """What the API server said of the objects that a request stumbled over; `problem` holds none of it."""
        refused = request.outcomes.filter(state="failed").values_list("server_words", flat=True)
        return "\n".join([*(one["words"] for one in request.server_words), *refused])

    def review(self, deployment: BundleDeployment, decision: str, by: str = "alice", **more: Any) -> Request:
        """What one of the people says of what is on the table; no worker looks at it yet. `more` is of the review."""
        request = self.latest(deployment)
        assert request.state == "in_review", (request.state, request.problem)
        said = {"reason": "read it", "channel": "browser", "acknowledges": [], **more}
        services.review(
            by=acting(self.people[by]),
            request_id=request.pk,
            decision=decision,
            subject_digest=request.subject_digest,
            **said,
        )
        return request

    def agree(self, deployment: BundleDeployment, by: str = "alice", **more: Any) -> Request:
        """Approve it, naming every deletion."""
        said = {"acknowledges": services.to_acknowledge(self.latest(deployment)), **more}
        return self.review(deployment, "Approve", by, **said)

    def approve(self, deployment: BundleDeployment, by: str = "alice", **more: Any) -> Request:
        """The same, and let the machine work."""
        request = self.agree(deployment, by, **more)
        self.work(request)
        return request

    def applied(self, name: str, *sources: Mapping[str, Any], **options: Any) -> BundleDeployment:
        """A deployment of these sources whose first request is approved and applied."""
        deployment = self.prepare(name, *sources, **options)
        request = self.approve(deployment)
        assert request.state == "applied", request.problem
        return deployment

    def pause(self, deployment: BundleDeployment, reason: str = "", *, is_paused: bool = True) -> None:
        """As rita, like all that follows: whoever asked may."""
        deployment.refresh_from_db()
        about = {"deployment": deployment, "is_paused": is_paused, "reason": reason}
        services.pause_deployment(by=acting(self.people["rita"]), via="browser", **about)

    def resume(self, deployment: BundleDeployment) -> None:
        self.pause(deployment, is_paused=False)

    def delete(self, deployment: BundleDeployment, **options: Any) -> None:
        deployment.refresh_from_db()
        services.delete_deployment(by=acting(self.people["rita"]), deployment=deployment, via="browser", **options)

    def ask_again(self, deployment: BundleDeployment) -> BundleDeployment:
        deployment.refresh_from_db()
        return services.ask_again(by=acting(self.people["rita"]), deployment=deployment, via="browser")

    def roll_back(self, deployment: BundleDeployment, revision: int = 1) -> None:
        deployment.refresh_from_db()
        by = acting(self.people["rita"])
        services.rollback_deployment(by=by, deployment=deployment, revision=revision, via="browser")

    def rotate(self, deployment: BundleDeployment, target: str = "*") -> None:
        deployment.refresh_from_db()
        by = acting(self.people["rita"])
        services.rotate_deployment(by=by, deployment=deployment, target=target, via="browser")

    def withdraw(self, request: Request, reason: str = "") -> None:
        by = acting(self.people["rita"])
        services.withdraw(by=by, request_id=request.pk, reason=reason, via="browser")

    def revoke(self, deployment: BundleDeployment, reason: str, revision: int = 1) -> None:
        """As alice, who may approve."""
        about = {"deployment": deployment, "revision": revision, "reason": reason}
        services.revoke_revision(by=acting(self.people["alice"]), via="browser", **about)

    def rewrite(
        self, deployment: BundleDeployment, change: Callable[[Any], object], writer: Identity
    ) -> BundleDeployment:
        """Its spec changed with kubectl, and what the watch sees of that: who wrote it."""
        ref = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name)
        self.edit(ref, lambda live: change(live["spec"]))
        seen = self.api.get(ref)
        assert seen is not None
        wrote = SpecWriter(writer, "cluster", None, timezone.now())
        return pivots.see(cluster=self.cluster, obj=seen, writer=wrote)

    def status(self, deployment: BundleDeployment) -> Mapping[str, Any]:
        """What kubectl shows of it now."""
        self.look_after(deployment)
        live = self.api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name))
        assert live is not None
        found = live["status"]
        assert isinstance(found, dict)
        return found

    def condition(self, deployment: BundleDeployment, kind: str) -> Mapping[str, Any]:
        return next(one for one in self.status(deployment)["conditions"] if one["type"] == kind)

    def look_after(self, deployment: BundleDeployment) -> BundleDeployment:
        look_after(deployment.pk)
        deployment.refresh_from_db()
        return deployment

    def edit(self, ref: ObjectRef, change: Callable[[Any], object], *, manager: str = "kubectl-edit") -> None:
        live.edit(self.api, ref, change, manager=manager)

    def until_may(
        self, who: Identity, verb: str, resource: str, group: str = "", name: str = "", *, is_allowed: bool = True
    ) -> None:
        """Until the API server has seen what was granted to `who` here a moment ago, or taken away."""
        request = AccessRequest(verb, group, resource, namespace=self.namespace, name=name)
        live.until_may(self.api, who, request, is_allowed=is_allowed)

    def save_policy(self, kind: str, expression: str, *, by: str = "alice", **changes: Any) -> Policy:
        """A policy in force for every deployment of this cluster, written by one of the people; `changes` are its fields."""
        wish = {
            "name": "always",
            "mode": "enforce",
            "names": [],
            "labels": {},
            "message": "",
            "is_active": True,
            **changes,
        }
        return services.save_policy(
            by=acting(self.people[by]), cluster=self.cluster, via="browser", kind=kind, expression=expression, **wish
        )

    def let_approve(self, who: str, name: str) -> None:
        """Of this deployment alone: others share the cluster, and the identity of a policy is that of an earlier one."""
        title = f"approve-{name}"
        rule = {
            "apiGroups": ["core.rukpak.io"],
            "resources": ["bundledeployments"],
            "resourceNames": [name],
            "verbs": ["approve"],
        }
        made = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": title},
            "rules": [rule],
        }
        for one in (made, binding(title, title, user_subject(who))):
            self.api.apply(one, field_manager=SEEDER)
        live.until_may(self.api, Identity(who), approval_of(name))

    def let_use_installer(self, who: str, account: str = "installer") -> None:
        impersonating = _impersonate("serviceaccounts", account)
        for one in role(f"{who}-uses-{account}", self.namespace, impersonating, user_subject(who)):
            self.api.apply(one, field_manager=SEEDER)
        self.until_may(Identity(who), "impersonate", "serviceaccounts", name=account)

    @property
    def installer(self) -> Identity:
        return Identity.of_service_account(self.namespace, "installer")

    def ctl(self, *words: str, user: str = "admin") -> str:
        """kubectl against this cluster, as one of its users."""
        command = [str(self.kubectl), "--kubeconfig", str(self.kubeconfig), "--context", user, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(120))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, command: str) -> str:
        """A line as an administrator would type it, `kubectl` being this cluster's."""
        path, home = f"{self.kubectl.parent}:{os.environ['PATH']}", str(self.kubeconfig.parent)
        environment = {"PATH": path, "HOME": home, "KUBECONFIG": str(self.kubeconfig)}
        line = ["bash", "-o", "pipefail", "-c", command]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=scaled(60), env=environment)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.ctl("get", *words, "-o", "json", "--show-managed-fields"))


def look_alone(work: Work) -> None:
    """What the process does that works on a row alone after a death; here, because it could not see a test's rows."""
    holder = claims.new_holder_name()
    assert work.claim(holder)
    assert claims.deaths_of(work.rows) == 1
    work.look(holder)
    work.come_through(holder)
    assert claims.deaths_of(work.rows) == 0
    claims.give_back(work.rows, holder)


def prepare(api: Api, namespace: str) -> None:
    """CRDs, rights as deploy/ grants them, a namespace with its installing account."""
    prepare_cluster(api)
    prepare_namespace(api, namespace)


def prepare_cluster(api: Api) -> None:
    for obj in (*_shipped(), *_rights()):
        api.apply(obj, field_manager=SEEDER)
    live.until_may(api, SERVICE, AccessRequest("impersonate", resource="users", name="rita"))
    for kind in ("BundleDeployment", "BundleDeploymentRequest"):
        live.until_served(api, "core.rukpak.io", "v1alpha2", kind)


@cache
def _shipped() -> tuple[dict[str, Any], ...]:
    """Read once: PyYAML takes longer for them than an API server."""
    files = [*sorted((ROOT / "deploy/crds").glob("*.yaml")), ROOT / "deploy/rbac.yaml"]
    return tuple(obj for file in files for obj in yaml.safe_load_all(file.read_text()))


def prepare_namespace(api: Api, namespace: str) -> None:
    """One more namespace with its installing account, in a cluster that is prepared."""
    for obj in _space(namespace):
        api.apply(obj, field_manager=SEEDER)
    # Each is the last of its kind: who sees them has seen what was bound before, too.
    live.until_may(api, Identity.of_service_account(namespace, "installer"), AccessRequest("*", "*", "*"))
    as_installer = AccessRequest("impersonate", resource="serviceaccounts", namespace=namespace, name="installer")
    live.until_may(api, SERVICE, as_installer)


def approval_of(name: str) -> AccessRequest:
    return AccessRequest("approve", "core.rukpak.io", "bundledeployments", name=name)


def user(name: str, cluster: Cluster) -> User:
    person = User.objects.create_user(name, password="journey")
    KubernetesIdentity.objects.create(
        user=person,
        cluster=cluster,
        authenticator=KubernetesIdentity.Authenticator.MAPPED,
        username=name,
        groups=[PEOPLE[name]],
        groups_seen_at=timezone.now(),
    )
    return person


def register(kubeconfig: str) -> Cluster:
    return services.register_cluster(name="journey", kubeconfig=kubeconfig, by=Actor("test", "shell"))


def _space(namespace: str) -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": namespace}},
        binding(f"{namespace}-installer", "cluster-admin", _account(namespace)),
        *role("use-accounts", namespace, _impersonate("serviceaccounts"), group("requesters"), group("platform")),
        *role("act-as-installer", namespace, _impersonate("serviceaccounts", "installer"), user_subject("pratique")),
    ]


def _rights() -> list[dict[str, Any]]:
    return [
        *(
            binding(f"journey-{name}", f"pratique-{name}", user_subject("pratique"))
            for name in ("web", "worker", "watch")
        ),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "journey-impersonator"},
            "rules": [_impersonate("users", *PEOPLE), _impersonate("groups", *PEOPLE.values())],
        },
        binding("journey-service-impersonates", "journey-impersonator", user_subject("pratique")),
        *(binding(f"journey-reader-{name}", "pratique-reader", group(name)) for name in PEOPLE.values()),
        binding("journey-view", "view", group("platform")),
        binding("journey-approver", "pratique-approver", group("platform")),
        binding("journey-requester", "pratique-requester", group("requesters")),
        binding("journey-policy", "pratique-approver", group("pratique-policies")),
    ]


def _impersonate(resource: str, *names: str) -> dict[str, Any]:
    narrowed = {"resourceNames": [*names]} if names else {}
    return {"apiGroups": [""], "resources": [resource], "verbs": ["impersonate"], **narrowed}


def role(name: str, namespace: str, rule: dict[str, Any], *subjects: dict[str, str]) -> list[dict[str, Any]]:
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name, "namespace": namespace}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    return [
        {**about, "kind": "Role", "rules": [rule]},
        {**about, "kind": "RoleBinding", "roleRef": reference, "subjects": [*subjects]},
    ]


def binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    """Of a ClusterRole, everywhere: the name, and who is bound, are the test's own."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def group(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}


def user_subject(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def _account(namespace: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": "installer", "namespace": namespace}


def open_to_loopback(given: Any) -> None:
    """Sources of the tests lie on this machine, without TLS."""
    given.PRATIQUE = {**settings.PRATIQUE, "ALLOWED_NETWORKS": ["127.0.0.0/8"], "PLAIN_HTTP_HOSTS": ["127.0.0.1"]}
