"""Writing a BundleDeployment in the cluster as the person who asks (docs/architecture): Kubernetes decides who may."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone

from approvals import access
from approvals.access import Caller
from approvals.bundle_spec import parse_spec
from approvals.errors import (
    Changed,
    CouldNotAsk,
    InvalidInput,
    MissingOwnRight,
    NotAllowed,
    NotFound,
    Refused,
    Revoked,
    TooMany,
)
from approvals.ledger import authors, made_values, pivots, quotas
from approvals.ledger.pivots import ASK_AGAIN, PAUSE_REASON, PAUSE_REASON_LENGTH, ROLLBACK_TO, ROTATE, SpecWriter
from approvals.lifecycle import AT_WORK
from approvals.models import BundleDeployment, Cluster
from approvals.selectors import lists
from provisioner.api_groups import OWN_GROUP
from provisioner.errors import AlreadyExists, Forbidden, InvalidObject, PratiqueError, PreconditionFailed, UnknownKind
from provisioner.render import check_config
from provisioner.sentences import some
from provisioner.values import DeletionPolicy, Identity, ObjectRef

API_VERSION = f"{OWN_GROUP}/v1alpha2"
KIND = "BundleDeployment"
# How often a write is tried again that met another one of the same object.
WRITE_AGAIN = 4
# The API server's words for whoever may not act as somebody: `… cannot impersonate resource "users" …`.
IMPERSONATION = re.compile(r'\bcannot impersonate\S* resource "')
# Of annotations that somebody has filled: there is no room left for who wrote it, or for what is asked.
FULL = re.compile(r"metadata\.annotations: Too long")
FULL_REMEDY = (
    ". The annotations of this BundleDeployment take all the room that Kubernetes gives them, 256 KiB, and who changes "
    "it is written down there too. Someone who may update it removes the largest: "
    "kubectl annotate bundledeployment NAME KEY-"
)
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")


Live = dict[str, Any]


def create_deployment(
    *, by: Caller, cluster: Cluster, name: str, spec: Mapping[str, Any], labels: Mapping[str, str], via: str
) -> BundleDeployment:
    """Create the BundleDeployment in the cluster as `by`, and make its first request."""
    obj = _new_object(name, spec, labels)
    writer = _writer(by, cluster, via)
    _check_room(cluster, writer.identity)
    with authors.writing(cluster=cluster, name=name):
        made = translate_refusals(
            cluster, lambda: access.kubernetes().create(cluster, obj, as_person=writer.identity), writer.identity
        )
        return pivots.see(cluster=cluster, obj=made, writer=writer)


def create_deployments(
    *, by: Caller, cluster: Cluster, specs: Mapping[str, Mapping[str, Any]], via: str
) -> list[BundleDeployment]:
    """Create all of these, by name and in this order, as `by`, or none of them; each makes a request of its own.

    Kubernetes is asked about each before the first one is created. What was created is deleted again where a later one
    is refused all the same; where that fails too, the error names what is left.
    """
    objects = [_new_object(name, spec, {}) for name, spec in specs.items()]
    writer = _writer(by, cluster, via)
    as_person = writer.identity
    _check_room(cluster, as_person)

    def create(obj: Live, *, dry_run: bool) -> Live:
        def call() -> Live:
            return access.kubernetes().create(cluster, obj, as_person=as_person, dry_run=dry_run)

        made: Live = translate_refusals(cluster, call, as_person)
        return made

    for obj in objects:
        create(obj, dry_run=True)
    made: list[Live] = []
    with contextlib.ExitStack() as announced:
        for name in specs:
            announced.enter_context(authors.writing(cluster=cluster, name=name))
        try:
            for obj in objects:
                written = create(obj, dry_run=False)
                made.append(written)
        except Refused as refusal:
            if left := _undo_creation(cluster, made, as_person):
                words = f"{refusal}. Created before that, and still there: {some(left)}; delete what you do not want"
                raise Changed(words) from refusal
            raise
        return [pivots.see(cluster=cluster, obj=obj, writer=writer) for obj in made]


def _undo_creation(cluster: Cluster, made: list[Live], as_person: Identity) -> list[str]:
    """Delete what was created a moment ago; the names of what could not be deleted."""
    left = []
    for meta in (obj["metadata"] for obj in reversed(made)):
        ref = ObjectRef(OWN_GROUP, "v1alpha2", KIND, "", meta["name"])
        try:
            access.kubernetes().delete(cluster, ref, uid=meta["uid"], as_person=as_person)
        except PratiqueError:
            left.append(meta["name"])
    return left


def _new_object(name: str, spec: Mapping[str, Any], labels: Mapping[str, str]) -> Live:
    """Raises InvalidInput for a name that cannot be that of a deployment, and a config that no content can be given."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"the name is {name!r}; expected at most 52 lowercase letters, digits and dashes", field="name"
        )
    _check_config(spec)
    metadata = {"name": name, "labels": dict(labels)}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": dict(spec)}


def change_deployment(
    *, by: Caller, deployment: BundleDeployment, spec: Mapping[str, Any], generation: int, via: str
) -> BundleDeployment:
    """Replace the spec as `by`; raises Changed where the spec is no longer the one of `generation`."""

    if any(spec.get(key) != deployment.spec.get(key) for key in ("format", "config")):
        _check_config(spec)
    if dict(spec) != deployment.spec:
        _check_room(deployment.cluster, access.acting_as(by, deployment.cluster), but=deployment)

    def change(live: Live) -> Live:
        _check_generation(live, generation)
        return {**live, "spec": dict(spec)}

    return _edit(by, deployment, change, via)


def _check_config(spec: Mapping[str, Any]) -> None:
    """Raise InvalidInput for a config that no content could be given; what depends on the content its request says."""
    parsed = parse_spec(spec)
    try:
        check_config(parsed.format, parsed.config)
    except PratiqueError as exc:
        where = "spec." if exc.in_full.startswith("config") else "spec.config: "
        raise InvalidInput(f"{where}{exc.in_full}", field="config") from exc


def pause_deployment(
    *, by: Caller, deployment: BundleDeployment, is_paused: bool, reason: str, via: str
) -> BundleDeployment:
    """Stop or resume writes to the cluster; requests are still made and reported."""

    def change(live: Live) -> Live:
        words = reason[:PAUSE_REASON_LENGTH] if is_paused else None
        return {**_annotated(live, PAUSE_REASON, words), "spec": {**live["spec"], "paused": is_paused}}

    return _edit(by, deployment, change, via)


def ask_again(*, by: Caller, deployment: BundleDeployment, via: str, generation: int | None = None) -> BundleDeployment:
    """Ask for the same spec once more as `by`: its sources are looked at anew, and a new request is made.

    `generation` is that of the spec that they were shown: whoever wrote it and asks once more answers for all of it
    (S05).

    For a request that failed, expired or was denied, for one whose stored bytes cannot be read, and for a branch or
    tag that has moved. One that is open is reported again, and its reviews no longer count. Raises Changed while one is
    being applied, and where somebody has written another spec since.
    """
    if deployment.requests.filter(state__in=AT_WORK).exists():
        raise Changed(f"{deployment.name} has a request that is being applied: try again when it is finished")
    _check_room(deployment.cluster, access.acting_as(by, deployment.cluster), but=deployment)
    now = timezone.now().isoformat()

    def change(live: Live) -> Live:
        if generation is not None:
            _check_generation(live, generation)
        return _annotated(live, ASK_AGAIN, now)

    return _edit(by, deployment, change, via, asks=True)


def rollback_deployment(*, by: Caller, deployment: BundleDeployment, revision: int, via: str) -> BundleDeployment:
    """Ask, as `by`, for the content of an earlier revision: a request of its own, from the stored bytes.

    An open request is superseded. Raises InvalidInput where that revision was never in force, Revoked where somebody
    has marked it so, and Changed while a request is being applied.
    """
    why_not = lists.why_not_restorable(deployment=deployment, number=str(revision))
    there = lists.numbered(deployment=deployment, number=str(revision))
    if why_not and there and there.revoked_at and there.request.cleared_at is None:
        raise Revoked(why_not, revision=revision)
    if why_not:
        raise InvalidInput(why_not, field="revision")
    if deployment.requests.filter(state__in=AT_WORK).exists():
        raise Changed(f"{deployment.name} has a request that is being applied: try again when it is finished")
    _check_room(deployment.cluster, access.acting_as(by, deployment.cluster), but=deployment)
    value = f"{revision}/{timezone.now().isoformat()}"
    return _edit(by, deployment, lambda live: _annotated(live, ROLLBACK_TO, value), via, asks=True)


def rotate_deployment(*, by: Caller, deployment: BundleDeployment, target: str, via: str) -> BundleDeployment:
    """Ask, as `by`, for what runs with new values in place of those that its chart made up: `target` is a SECRET, a
    SECRET/KEY, or * for all.

    An open request for something else is superseded by one for both. Raises InvalidInput where `target` names nothing
    that is in use, and Changed while a request is being applied.
    """
    if why_not := made_values.why_not_rotatable(deployment, target):
        raise InvalidInput(why_not, field="target")
    if deployment.requests.filter(state__in=AT_WORK).exists():
        raise Changed(f"{deployment.name} has a request that is being applied: try again when it is finished")
    _check_room(deployment.cluster, access.acting_as(by, deployment.cluster), but=deployment)
    value = f"{target}@{timezone.now().isoformat()}"
    return _edit(by, deployment, lambda live: _annotated(live, ROTATE, value), via, asks=True)


def delete_deployment(*, by: Caller, deployment: BundleDeployment, via: str, policy: str = "") -> BundleDeployment:
    """Ask for deletion as `by`: the object stays Terminating until the deletion request is approved (S15).

    `policy`, if any, is written as spec.deletionPolicy first. Raises InvalidInput where it is none.
    """
    if policy and policy not in set(DeletionPolicy):
        expected = " or ".join(DeletionPolicy)
        raise InvalidInput(f"the deletionPolicy is {policy[:50]!r}; expected {expected}", field="policy")
    if policy and policy != deployment.bundle_spec.deletion_policy:
        with_policy = {"deletionPolicy": policy}
        deployment = _edit(by, deployment, lambda live: {**live, "spec": {**live["spec"], **with_policy}}, via)
    asker = _writer(by, deployment.cluster, via)
    cluster, uid, identity, ref = deployment.cluster, deployment.uid, asker.identity, _ref(deployment)
    with authors.writing(cluster=cluster, name=deployment.name):
        before = translate_refusals(cluster, lambda: access.kubernetes().get(cluster, ref))
        generation = _generation(before) if before else 0
        translate_refusals(
            cluster, lambda: access.kubernetes().delete(cluster, ref, uid=uid, as_person=identity), identity
        )
        live = translate_refusals(cluster, lambda: access.kubernetes().get(cluster, ref))
        if live is None:
            pivots.forget(cluster=cluster, uid=uid)
            return deployment
        writer = asker if _generation(live) == generation + 1 else None
        return pivots.see(cluster=cluster, obj=live, writer=writer, asker=asker)


def _writer(by: Caller, cluster: Cluster, via: str) -> SpecWriter:
    """As whom `by` writes there, by a proof that is young enough."""
    return SpecWriter.of_proof(access.proved_on(by, cluster), via, by.user)


def _check_generation(live: Live, shown: int) -> None:
    if live["metadata"].get("generation") != shown:
        name = live["metadata"]["name"]
        raise Changed(f"{name} was changed in the cluster since you opened this page: reload it and try again")


def _generation(live: Live) -> int:
    return int(live["metadata"].get("generation") or 1)


def _check_room(cluster: Cluster, requester: Identity, *, but: BundleDeployment | None = None) -> None:
    """Refuse before anything is written what would only wait for room (ledger.quotas)."""
    why_not = quotas.why_not(cluster, quotas.Charge(requester.username), but=but)
    if why_not:
        raise TooMany(why_not)


def _ref(deployment: BundleDeployment) -> ObjectRef:
    group, _, version = API_VERSION.partition("/")
    return ObjectRef(group, version, KIND, "", deployment.name)


def _annotated(live: Live, name: str, value: str | None) -> Live:
    """The object with this annotation, or without it where `value` is None."""
    annotations = {**(live["metadata"].get("annotations") or {}), name: value}
    kept = {key: text for key, text in annotations.items() if text is not None}
    return {**live, "metadata": {**live["metadata"], "annotations": kept}}


def _edit(
    by: Caller, deployment: BundleDeployment, change: Callable[[Live], Live], via: str, *, asks: bool = False
) -> BundleDeployment:
    """Read, change and replace the object as `by`; again where its status or something else moved in between.

    Only a new generation is theirs: a write that leaves the spec as it was does not make them its writer (S05).
    """
    person = _writer(by, deployment.cluster, via)
    with authors.writing(cluster=deployment.cluster, name=deployment.name):
        obj, written = _change(deployment, change, person.identity)
        writer = person if _generation(written) > _generation(obj) else None
        return pivots.see(cluster=deployment.cluster, obj=written, writer=writer, asker=person if asks else None)


def _change(deployment: BundleDeployment, change: Callable[[Live], Live], identity: Identity) -> tuple[Live, Live]:
    """What was sent and what came of it."""
    for _ in range(WRITE_AGAIN):
        obj = change(_live(deployment))
        with contextlib.suppress(Changed):
            return obj, _replace(deployment, obj, identity)
    obj = change(_live(deployment))
    return obj, _replace(deployment, obj, identity)


def _replace(deployment: BundleDeployment, obj: Live, identity: Identity) -> Live:
    cluster = deployment.cluster
    written: Live = translate_refusals(
        cluster, lambda: access.kubernetes().replace(cluster, obj, as_person=identity), identity
    )
    return written


def _live(deployment: BundleDeployment) -> Live:
    """As the service, which may read every BundleDeployment: only writes need the right to act as people (S31)."""
    cluster = deployment.cluster
    live = translate_refusals(cluster, lambda: access.kubernetes().get(cluster, _ref(deployment)))
    if live is None or live["metadata"]["uid"] != deployment.uid:
        raise NotFound(f"BundleDeployment {deployment.name} no longer exists on cluster {deployment.cluster.name}")
    return dict(live)


def translate_refusals(cluster: Cluster, call: Callable[[], Any], identity: Identity | None = None) -> Any:
    """Kubernetes' refusals as our own errors, with its words: they answer the person who wrote, as that person.

    Raises MissingOwnRight where it did not even let us act as them.
    """
    try:
        return call()
    except Forbidden as exc:
        if identity and IMPERSONATION.search(exc.in_full):
            command = f"pratique-manage rights --cluster {cluster.name} | kubectl apply -f -"
            raise MissingOwnRight(
                f"Pratique is not allowed to impersonate {identity.username} on cluster {cluster.name}, so nothing was "
                f"written. An operator must grant this right. Print and apply it with:\n{command}",
                cluster=cluster.name,
                command=command,
            ) from exc
        raise NotAllowed(exc.in_full) from exc
    except (AlreadyExists, PreconditionFailed) as exc:
        raise Changed(exc.in_full) from exc
    except (InvalidObject, UnknownKind) as exc:
        remedy = FULL_REMEDY if FULL.search(exc.in_full) else ""
        raise InvalidInput(f"{exc.in_full}{remedy}") from exc
    except PratiqueError as exc:
        raise CouldNotAsk(exc.in_full) from exc
