"""A small world for tests of the app: rows made directly, and a fake Kubernetes at our own port."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals import access, services
from approvals.access import Caller, Scope
from approvals.ledger import pivots
from approvals.ledger.pivots import SpecWriter
from approvals.models import (
    ApiToken,
    BundleDeployment,
    Cluster,
    Content,
    FloatingReference,
    KubernetesIdentity,
    Proof,
    Report,
    Request,
    Review,
    SignIn,
)
from approvals.services import Browser
from approvals.services.sessions import SIGN_IN
from provisioner.api_groups import OWN_GROUP
from provisioner.errors import Forbidden, PreconditionFailed, Unreachable
from provisioner.values import AccessAnswer, AccessRequest, Identity, ObjectRef, Severity

_numbers = itertools.count(1)


@dataclass
class FakeKubernetes:
    """Allows what `allowed` names as (username, verb, name), or `RESOURCE NAMESPACE/NAME` for the name; `is_down` makes
    every question an error.

    So many writes as `conflicts` says meet another write of the same object. Nobody may do anything with the resources
    in `closed`. `servers` are the uids of the clusters that kubeconfigs with these words lead to.
    """

    allowed: set[tuple[str, str, str]] = field(default_factory=set)
    is_down: bool = False
    conflicts: int = 0
    closed: set[str] = field(default_factory=set)
    asked: list[tuple[str, AccessRequest]] = field(default_factory=list)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: dict[str, Identity] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    # By kind and namespace, for whoever is allowed to `list`.
    names: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    # ClusterRoles and their bindings, as well.
    roles: list[dict[str, Any]] = field(default_factory=list)

    def allow(self, username: str, verb: str, name: str = "*") -> None:
        self.allowed.add((username, verb, name))

    def ask(self, cluster: Cluster, identity: Identity, request: AccessRequest) -> AccessAnswer:
        if self.is_down:
            raise Unreachable("the API server did not answer within 10 s")
        self.asked.append((identity.username, request))
        resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
        exact = f"{resource} {request.namespace}/{request.name}"
        # Who may act as the installing account may not act as others, and who may do something with our objects, or
        # others by name, may not do it with everything there is.
        is_account = resource.startswith("serviceaccounts") and request.verb != "get"
        is_other = resource in ("users", "groups", "signers") or (is_account and request.namespace != "harbour")
        is_reading = request.verb == "get" and not request.subresource and resource != "secrets"
        is_wide = request.group not in (OWN_GROUP, "*") and not request.name and not is_reading
        every = () if is_other or is_wide else ("*", request.name)
        wanted = {(identity.username, request.verb, name) for name in (*every, exact)}
        return AccessAnswer(bool(wanted & self.allowed) and request.resource not in self.closed, "by rule")

    def review_token(self, cluster: Cluster, token: str) -> Identity | None:
        return self.tokens.get(token)

    def get(self, cluster: Cluster, ref: ObjectRef) -> Any:
        return self.objects.get(ref.name)

    def create(
        self, cluster: Cluster, obj: dict[str, Any], *, as_person: Identity, dry_run: bool = False
    ) -> dict[str, Any]:
        if self.is_down:
            raise Unreachable("the API server did not answer within 10 s")
        made = seen(obj["metadata"]["name"], obj["spec"], annotations=obj["metadata"].get("annotations") or {})
        if not dry_run:
            self.objects[obj["metadata"]["name"]] = made
        return made

    def replace(self, cluster: Cluster, obj: dict[str, Any], *, as_person: Identity) -> dict[str, Any]:
        old = self.objects[obj["metadata"]["name"]]
        if self.conflicts:
            self.conflicts -= 1
            raise PreconditionFailed("the object has been modified")
        changed = old["spec"] != obj["spec"]
        meta = {**obj["metadata"], "generation": old["metadata"]["generation"] + changed}
        self.objects[obj["metadata"]["name"]] = {**obj, "metadata": meta}
        return self.objects[obj["metadata"]["name"]]

    def delete(self, cluster: Cluster, ref: ObjectRef, *, uid: str, as_person: Identity, version: str = "") -> None:
        meta = self.objects[ref.name]["metadata"]
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        meta["generation"] += 1

    def plural_of(self, cluster: Cluster, ref: ObjectRef) -> str | None:
        return ref.kind.lower() + "s"

    def names_of(self, cluster: Cluster, kind: str, *, namespace: str, most: int, as_person: Identity) -> list[str]:
        if self.is_down:
            raise Unreachable("the API server did not answer within 10 s")
        if not {(as_person.username, "list", name) for name in (kind, "*")} & self.allowed:
            raise Forbidden(f"{as_person.username} is not allowed to list {kind}")
        return self.names.get((kind, namespace), [])[:most]

    def cluster_roles(self, cluster: Cluster, *, most: int, as_person: Identity) -> list[dict[str, Any]]:
        if self.is_down:
            raise Unreachable("the API server did not answer within 10 s")
        wanted = {(as_person.username, "list", name) for name in ("ClusterRole", "*")}
        if not wanted & self.allowed or "clusterroles" in self.closed:
            raise Forbidden(f"{as_person.username} is not allowed to list ClusterRole")
        kinds = ("ClusterRole", "ClusterRoleBinding")
        return [obj for kind in kinds for obj in [one for one in self.roles if one["kind"] == kind][:most]]

    def uid_behind(self, name: str, kubeconfig: str) -> str:
        if self.is_down:
            raise Unreachable("the API server did not answer within 10 s")
        where = kubeconfig or "in-cluster"
        found = next((uid for server, uid in self.servers.items() if server in where), None)
        if found is None:
            raise Forbidden("namespaces kube-system is forbidden")
        return found


def spec(version: str = "1.0.0", **more: Any) -> dict[str, Any]:
    return {
        "installNamespace": "harbour",
        "serviceAccountName": "installer",
        "sources": [{"kind": "http", "http": {"url": f"https://example.com/x-{version}.tar.gz"}}],
        **more,
    }


def seen(name: str, wish: dict[str, Any], *, uid: str = "", generation: int = 1, **meta: Any) -> dict[str, Any]:
    """A BundleDeployment as the API server shows it."""
    return {
        "apiVersion": "core.rukpak.io/v1alpha2",
        "kind": "BundleDeployment",
        "metadata": {
            "name": name,
            "uid": uid or str(uuid.uuid4()),
            "generation": generation,
            "resourceVersion": str(next(_numbers)),
            **meta,
        },
        "spec": wish,
    }


def cluster(name: str = "prod") -> Cluster:
    return Cluster.objects.create(name=name, uid=str(uuid.uuid4()), kubeconfig="{}", created_at=timezone.now())


def user(name: str, where: Cluster, *groups: str) -> User:
    person = User.objects.create_user(name)
    KubernetesIdentity.objects.create(
        user=person,
        cluster=where,
        authenticator=KubernetesIdentity.Authenticator.MAPPED,
        username=name,
        groups=list(groups),
        groups_seen_at=timezone.now(),
    )
    return person


def session_of(person: User) -> SignIn:
    """A session in which everything that this account is was proved: when its groups were seen, and just now for a password."""
    now = timezone.now()
    row = SignIn.objects.create(user=person, began_at=now, seen_at=now, password_at=now, address="192.0.2.7")
    for one in person.kubernetes_identities.exclude(authenticator=KubernetesIdentity.Authenticator.MAPPED):
        Proof.objects.create(sign_in=row, identity=one, groups=one.groups, proved_at=one.groups_seen_at)
    return row


def acting(person: User) -> Caller:
    """Who asks, where this person does."""
    return access.of_sign_in(session_of(person))


def by_token(cluster: str, token: str, before: Caller | None = None) -> Caller:
    """Who asks in a browser that signs in with this token."""
    proved = services.prove(cluster=cluster, token=token, address="192.0.2.1")
    return access.of_sign_in(services.sign_in(proved=proved, browser=Browser("192.0.2.1"), before=before))


def enter(client: Client, person: User) -> None:
    """Sign this person in, in the client's browser."""
    client.force_login(person)
    session = client.session
    session[SIGN_IN] = session_of(person).pk
    session.save()


def api_token(person: User, **more: Any) -> tuple[ApiToken, str]:
    """A token of theirs for everything, where `more` does not narrow it."""
    caller = acting(person)
    clusters = Cluster.objects.filter(pk__in=[proof.cluster_id for proof in caller.proofs])
    wish = {"name": "test", "days": 1, "scopes": Scope.values, "clusters": list(clusters), **more}
    made = services.create_api_token(by=caller, **wish)
    SignIn.objects.filter(pk=caller.holder_id or 0).delete()
    return made


def writer(person: User) -> SpecWriter:
    identity = person.kubernetes_identities.get()
    return SpecWriter(Identity(identity.username, tuple(identity.groups)), "browser", person)


def submit_spec(where: Cluster, obj: dict[str, Any], by: User | None = None) -> BundleDeployment:
    return pivots.see(cluster=where, obj=obj, writer=writer(by) if by else None)


def in_review(request: Request, *, worst: str = "safe", actions: list[dict[str, Any]] | None = None) -> Request:
    """Bring a request to review, as the prepare step does, with a report of these planned actions."""
    content, _ = Content.objects.get_or_create(
        digest=f"sha256:{'c' * 64}",
        defaults={
            "install_namespace": "harbour",
            "service_account": "installer",
            "format": "plain",
            "object_count": 1,
            "byte_count": 10,
            "created_at": timezone.now(),
        },
    )
    planned = actions or []
    Report.objects.create(
        request=request,
        round=request.round,
        worst=worst,
        headline=["one object is new"],
        severities={},
        actions={},
        body={
            "headline": [],
            "findings": [],
            "private": [],
            "unjudged": 0,
            "plan": {"actions": planned, "digest": "sha256:p"},
        },
        computed_at=timezone.now(),
    )
    Request.objects.filter(pk=request.pk).update(
        state="in_review",
        content=content,
        plan_digest="sha256:p",
        subject_digest=f"sha256:{request.pk:064d}",
        weight=pivots.weight_of(Severity(worst)),
    )
    request.refresh_from_db()
    return request


def yesterday() -> Any:
    return timezone.now() - timedelta(days=1)


def review(
    request: Request, by: Caller, decision: str = "Approve", *, reason: str = "", channel: str = "browser", **more: Any
) -> Review:
    """What `by` decides of the subject that `request` is about now."""
    return services.review(
        by=by,
        request_id=request.pk,
        decision=decision,
        subject_digest=request.subject_digest,
        reason=reason,
        channel=channel,
        **more,
    )


def following(deployment: BundleDeployment, reference: dict[str, Any], follower: dict[str, Any]) -> None:
    """Have it follow a branch: of both rows the columns that differ from new ones; a time is how long ago it is."""
    now = timezone.now()
    columns, own = (
        {name: now - value if isinstance(value, timedelta) else value for name, value in given.items()}
        for given in (reference, follower)
    )
    made = FloatingReference.objects.create(key=deployment.name, kind="git", host="example.com", **columns)
    made.followers.create(
        deployment=deployment, **{"position": 0, "name": "https://example.com/app.git branch main", **own}
    )
