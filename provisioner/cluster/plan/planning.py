"""What apply would do to all objects of a content, and to what it no longer has. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from provisioner.cluster.bulk_read import PARALLEL, read_many
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.order import created_namespaces, defined_kinds, hooks_at, phases, served_versions
from provisioner.cluster.plan import helm_releases
from provisioner.cluster.plan.adopting import TAKEN_OVER
from provisioner.cluster.plan.comparing import plan_digest
from provisioner.cluster.plan.dry_run import action_on
from provisioner.cluster.plan.known import Options, PlanInputs
from provisioner.cluster.plan.own_webhooks import names_of
from provisioner.cluster.plan.pruning import deletions, leaving
from provisioner.errors import EmptyBundle
from provisioner.values import (
    Action,
    Content,
    GroupKind,
    HookMoment,
    Manifest,
    ObjectIdentity,
    Plan,
    PlannedAction,
)

_NAMESPACE = GroupKind("", "Namespace")
_DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


def plan(
    cluster: ClusterClient,
    content: Content,
    *,
    inventory: Mapping[ObjectIdentity, str],
    previous: Content | None,
    field_manager: str,
    options: Options | None = None,
) -> Plan:
    """The plan for `content` as the identity of `cluster`: its objects in the order of apply, then the deletions.

    `inventory` is what is ours: the uid by `ref.identity`. What it holds and `content` has not is deleted; `previous`
    only tells in which version those objects were written. An object that exists and is not ours is an ADOPT, with a
    problem unless `options` let it be adopted. Raises TryLater where the server does not answer, DependencyCycle where
    no order of the objects is possible, EmptyBundle for no objects and no removal.
    """
    options = options or Options()
    if not content.manifests and not options.is_removal:
        raise EmptyBundle(
            f"the content has no object, and {len(inventory)} that are ours would go; nobody asked for it"
        )
    brought = frozenset(one.ref.identity for one in content.manifests)
    before = {one.ref.identity: one for one in (previous.everything if previous else ())}
    going = leaving(inventory, content, before)
    known = read_many(cluster, [*(one.ref for one in content.manifests), *going])
    reviewed = {one.ref.identity: one for one in (options.reviewed.actions if options.reviewed else ())}
    webhooks = names_of((*content.manifests, *before.values()))
    scene = PlanInputs(cluster, inventory, field_manager, options, known, before, reviewed, webhooks, brought=brought)
    first = [one for one in content.manifests if one.ref.group_kind in {_NAMESPACE, _DEFINITION}]
    actions = _in_parallel(scene, first)
    scene = _after(scene, first, actions)
    actions |= _in_parallel(scene, [one for one in content.manifests if one.ref.identity not in actions])
    ordered = [actions[identity] for identity in _order(content, reviewed)]
    ordered += deletions(scene, going)
    is_taking_over = options.is_taking_over or any(TAKEN_OVER in one.notes for one in ordered)
    if options.helm_release and is_taking_over and not options.is_removal:
        ordered += helm_releases.records(cluster, options.helm_release)
    return Plan(tuple(ordered), plan_digest(ordered))


def _order(content: Content, reviewed: Iterable[ObjectIdentity]) -> list[ObjectIdentity]:
    """The order in which a plan is told: the reviewed one's, which found no circle in this content, else of apply."""
    wished = {one.ref.identity for one in content.manifests}
    known = [identity for identity in reviewed if identity in wished]
    if len(known) == len(wished):
        return known
    early, late = (
        [one for moment in moments for one in hooks_at(moment, content.manifests)]
        for moments in ((HookMoment.BEFORE, HookMoment.BEFORE_DELETION), (HookMoment.AFTER, HookMoment.AFTER_DELETION))
    )
    staying = (one for phase in phases(content.manifests) for one in phase.manifests)
    return list(dict.fromkeys(one.ref.identity for one in (*early, *staying, *late)))


def _after(scene: PlanInputs, first: list[Manifest], actions: Mapping[ObjectIdentity, PlannedAction]) -> PlanInputs:
    changing = [one for one in first if actions[one.ref.identity].action is not Action.NONE]
    creating = [one for one in first if actions[one.ref.identity].action is Action.CREATE]
    return replace(
        scene,
        new_kinds=defined_kinds(changing),
        new_versions=served_versions(changing),
        new_namespaces=created_namespaces(creating),
    )


def _in_parallel(scene: PlanInputs, manifests: list[Manifest]) -> dict[ObjectIdentity, PlannedAction]:
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        found = pool.map(lambda one: action_on(scene, one), manifests)
        return {manifest.ref.identity: action for manifest, action in zip(manifests, found, strict=True)}
