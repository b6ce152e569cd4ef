"""When a spec was written, as far as the watch and the row tell, and what a stamp then says about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from approvals.admission import StampedWrite
from approvals.controllers import read_controllers
from approvals.ledger import pivots
from approvals.ledger.pivots import SpecWriter, why_unknown
from approvals.models import BundleDeployment, KubernetesIdentity, Request
from approvals.watch.authorship import requester_of, written_between
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import look
from tests.support.approvals.waivers import approve

CREATED = "2026-11-25T12:00:00Z"
AT = datetime(2026, 11, 25, 12, tzinfo=UTC)
NEW, CHANGED = world.spec("1"), world.spec("2")


def obj(spec: dict[str, Any] = CHANGED, **meta: Any) -> dict[str, Any]:
    told = {"resourceVersion": "150", "creationTimestamp": CREATED, **meta}
    return world.seen("strimzi", spec, **told)


def row(generation: int = 1, version: str = "120", **spec: Any) -> BundleDeployment:
    return BundleDeployment(generation=generation, resource_version=version, spec={**NEW, **spec})


@pytest.mark.parametrize(
    ("seen", "known", "is_exact", "expected"),
    [
        (obj(NEW), None, True, StampedWrite(149, 150, AT)),
        (obj(NEW), None, False, StampedWrite(0, 150, AT)),
        (obj(NEW, generation=3), None, False, None),
        (obj(generation=2), row(), True, StampedWrite(149, 150)),
        (obj(generation=2), row(), False, StampedWrite(120, 150)),
        (obj(generation=2), row(version="opaque"), False, StampedWrite(0, 150)),
        (obj(generation=4), row(), True, StampedWrite(120, 150)),
        (obj(generation=1), row(), True, None),
        (obj(NEW, generation=2), row(), True, None),
        (obj({**NEW, "id": 9007199254740992.0}, generation=2), row(id=9007199254740993), True, None),
        (obj({**NEW, "id": 2}, generation=2), row(id=1), True, StampedWrite(149, 150)),
        (obj(generation=2, resourceVersion="opaque"), row(), True, None),
        (obj(generation=2, deletionTimestamp=CREATED), row(), True, None),
    ],
    ids=[
        "new",
        "new, by a list",
        "new to us",
        "changed",
        "changed, by a list",
        "after nobody knows what",
        "generations were missed",
        "seen before",
        "a deletion that was taken back",
        "another number that CEL takes for the same",
        "another number",
        "no number",
        "terminating",
    ],
)
def test_S05_a_stamp_is_about_the_write_that_made_the_spec(
    seen: dict[str, Any], known: BundleDeployment | None, is_exact: bool, expected: StampedWrite | None
) -> None:
    assert written_between(seen, known, is_exact=is_exact) == expected


def test_S05_who_is_known_by_the_name_is_the_author_whatever_the_name_is_later(env: World) -> None:
    row = KubernetesIdentity.objects.get(user=env.ada, cluster=env.cluster)
    row.issuer, row.subject = "https://issuer.example.com", "a-1"
    row.save()
    writer = requester_of(env.cluster, obj(), Identity(row.username, ("platform",), row.uid), AT)
    assert writer == SpecWriter(
        Identity(row.username, ("platform",), row.uid), "kubectl", env.ada, AT, "https://issuer.example.com", "a-1"
    )
    stranger = requester_of(env.cluster, obj(), Identity("zoe"), AT)
    assert stranger == SpecWriter(Identity("zoe"), "kubectl", groups_at=AT)


@pytest.mark.parametrize(
    "who",
    [
        Identity("kubernetes-admin", ("system:masters",)),
        Identity("system:admin", ("system:masters", "system:authenticated")),
        Identity("system:anonymous", ("system:unauthenticated",)),
        Identity("system:kube-controller-manager"),
        Identity("guest", ("system:unauthenticated",)),
        Identity("system:node:one", ("system:nodes",)),
        Identity("system:serviceaccount:argocd:other"),
    ],
    ids=lambda who: who.username,
)
def test_S12_a_name_that_is_nobodys_own_asks_for_nothing(env: World, who: Identity) -> None:
    assert requester_of(env.cluster, obj(), who, AT) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kubernetes-admin", "kubernetes-admin wrote it as a member of system:masters"),
        ("system:anonymous", "system:anonymous wrote it, and that is nobody's own name"),
        ("system:serviceaccount:argocd:other", "argocd:other wrote it, and PRATIQUE_GITOPS_FILE does not list"),
        ("", "generation 1 was written while no admission policy was known to prove by whom"),
    ],
)
def test_a_name_that_is_nobodys_own_is_said_where_the_requester_is_unknown(env: World, name: str, words: str) -> None:
    who = SpecWriter(Identity(name, ("system:masters",)), "cluster", is_known=False) if name else None
    pivots.see(cluster=env.cluster, obj=world.seen("harbour", CHANGED), writer=who)
    request = Request.objects.get()
    write = request.deployment.writes.get()
    assert (request.requesters, request.is_requester_known, write.username, write.proved_as) == ([], False, "", name)
    assert words in why_unknown(request)
    request = world.in_review(request)
    approve(request, env.ada)
    assert words in look(request).problem
    pivots.see(
        cluster=env.cluster,
        obj=world.seen("harbour", CHANGED, uid=request.deployment.uid),
        writer=world.writer(env.rita),
    )
    assert why_unknown(Request.objects.get()) == "", "a door says who it was"


@pytest.mark.parametrize(("listed", "is_known"), [([], False), (["payments/other"], False), (["payments/db"], True)])
def test_S34_who_pushes_names_no_secret_that_the_operator_did_not_list(
    env: World, settings: Any, listed: list[str], is_known: bool
) -> None:
    auth = {"secret": {"name": "db", "namespace": "payments"}}
    source = {"kind": "git", "git": {"repository": "https://evil.example/x", "ref": {"branch": "main"}, "auth": auth}}
    spec = {**CHANGED, "sources": [source]}
    controller = {
        "account": "argocd/controller",
        "cluster": env.cluster.name,
        "deployments": {"matchNames": ["*"]},
        "installers": [f"{spec['installNamespace']}/{spec['serviceAccountName']}"],
        "secrets": listed,
    }
    settings.PRATIQUE = {**settings.PRATIQUE, "GITOPS_FILE": read_controllers({"controllers": [controller]})}
    found = requester_of(env.cluster, obj(spec), Identity("system:serviceaccount:argocd:controller"), AT)
    assert (found is not None) is is_known


@pytest.mark.parametrize(("listed", "is_known"), [("deployments", False), ("catalogs", True)])
def test_S34_a_controller_wrote_a_catalog_only_where_it_is_listed_for_catalogs(
    env: World, settings: Any, listed: str, is_known: bool
) -> None:
    controller = {"account": "argocd/controller", "cluster": env.cluster.name, listed: {"matchNames": ["*"]}}
    controller |= {"installers": ["shop/installer"]} if listed == "deployments" else {}
    settings.PRATIQUE = {**settings.PRATIQUE, "GITOPS_FILE": read_controllers({"controllers": [controller]})}
    seen = obj({"source": {"kind": "image", "image": {"ref": "example.com/catalog:latest"}}})
    who = Identity("system:serviceaccount:argocd:controller")
    found = requester_of(env.cluster, seen, who, AT, is_catalog=True)
    assert (found and found.via) == ("gitops" if is_known else None)
