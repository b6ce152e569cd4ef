"""What apply would do to all objects of a content, and to what it no longer has; and two such plans compared.

Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import attrgetter

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import changes, hidden
from provisioner.cluster.evidence import PARALLEL_READS, read_many
from provisioner.cluster.order import (
    DEFINITION,
    EARLY,
    LATE,
    NAMESPACE,
    created_namespaces,
    defined_kinds,
    hooks_at,
    phases,
    served_versions,
)
from provisioner.cluster.plan import helm_releases
from provisioner.cluster.plan.adoption import TAKEN_OVER
from provisioner.cluster.plan.dry_run import plan_object
from provisioner.cluster.plan.inputs import Options, PlanInputs, names_of_own_webhooks
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.cluster.plan.prune import objects_leaving, plan_deletions
from provisioner.errors import EmptyBundle
from provisioner.retention import takes_more
from provisioner.sentences import some
from provisioner.values import Action, Content, Manifest, ObjectIdentity, Plan, PlanDifference, PlannedAction


def is_within(now: Iterable[PlannedAction], reviewed: Iterable[PlannedAction]) -> bool:
    """Whether carrying out `reviewed` is, now, at most what `now` says: the same on each object, or nothing any more
    where an object was to be updated (S04).

    Anything else is more, or something else: an object that is in one of the two plans only, an update of what was to
    stay as it is, another uid, data that goes along now.
    """
    now, reviewed = list(now), list(reviewed)
    before = {action.ref.identity: (action.action, action.uid) for action in reviewed}
    after = {action.ref.identity: (action.action, action.uid) for action in now}
    moved = {identity for identity, did in after.items() if before.get(identity) != did}
    is_covered = before.keys() == after.keys() and all(
        after[identity] == (Action.NONE, before[identity][1]) and before[identity][0] is Action.UPDATE
        for identity in moved
    )
    return is_covered and not data_lost_since(now, reviewed)


def data_lost_since(now: Iterable[PlannedAction], reviewed: Iterable[PlannedAction]) -> list[str]:
    """What data goes with the objects of `now` that did not with those of `reviewed`, in words."""
    before = {action.ref.identity: action for action in reviewed}
    found = (takes_more(action, before[action.ref.identity]) for action in now if action.ref.identity in before)
    return [words for words in found if words]


def compare_plans(now: Iterable[PlannedAction], reviewed: Iterable[PlannedAction]) -> list[PlanDifference]:
    """What is planned otherwise than it was reviewed, by object.

    Of an object that was deleted and made again under its name both may be the same action, and `now` says so.
    """
    before, after = ({action.ref.identity: action for action in actions} for actions in (reviewed, now))
    found = []
    for identity, either in {**before, **after}.items():
        was, will = before.get(identity), after.get(identity)
        takes_data = bool(was and will and takes_more(will, was))
        if was and will and (was.action, was.uid) == (will.action, will.uid) and not takes_data:
            continue
        words = str(will.action) if will else ""
        if was and will and was.action is will.action and was.uid != will.uid:
            words += ", of an object that was made again"
        if takes_data:
            words += ", and its PersistentVolumeClaims go with it"
        found.append(PlanDifference(str(either.ref), str(was.action) if was else "", words))
    return sorted(found, key=attrgetter("object"))


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
    brought = frozenset(manifest.ref.identity for manifest in content.manifests)
    before = {manifest.ref.identity: manifest for manifest in (previous.everything if previous else ())}
    going = objects_leaving(inventory, content, before)
    known = read_many(cluster, [*(manifest.ref for manifest in content.manifests), *going])
    reviewed = {action.ref.identity: action for action in (options.reviewed.actions if options.reviewed else ())}
    webhooks = names_of_own_webhooks((*content.manifests, *before.values()))
    scene = PlanInputs(cluster, inventory, field_manager, options, known, before, reviewed, webhooks, brought=brought)
    first = [manifest for manifest in content.manifests if manifest.ref.group_kind in {NAMESPACE, DEFINITION}]
    actions = _in_parallel(scene, first)
    changing = [manifest for manifest in first if actions[manifest.ref.identity].action is not Action.NONE]
    creating = [manifest for manifest in first if actions[manifest.ref.identity].action is Action.CREATE]
    scene = replace(
        scene,
        new_kinds=defined_kinds(changing),
        new_versions=served_versions(changing),
        new_namespaces=created_namespaces(creating),
    )
    actions |= _in_parallel(scene, [manifest for manifest in content.manifests if manifest.ref.identity not in actions])
    ordered = [actions[identity] for identity in _order(content, reviewed)]
    ordered += plan_deletions(scene, going)
    is_taking_over = options.is_taking_over or any(TAKEN_OVER in action.notes for action in ordered)
    if options.helm_release and is_taking_over and not options.is_removal:
        ordered += helm_releases.plan_record_deletions(cluster, options.helm_release)
    return Plan(tuple(ordered), plan_digest(ordered))


def _order(content: Content, reviewed: Iterable[ObjectIdentity]) -> list[ObjectIdentity]:
    """The order in which a plan is told: the reviewed one's, which found no circle in this content, else of apply."""
    wished = {manifest.ref.identity for manifest in content.manifests}
    known = [identity for identity in reviewed if identity in wished]
    if len(known) == len(wished):
        return known
    early, late = (
        [manifest for moment in moments for manifest in hooks_at(moment, content.manifests)]
        for moments in (EARLY, LATE)
    )
    staying = (manifest for phase in phases(content.manifests) for manifest in phase.manifests)
    return list(dict.fromkeys(manifest.ref.identity for manifest in (*early, *staying, *late)))


def _in_parallel(scene: PlanInputs, manifests: list[Manifest]) -> dict[ObjectIdentity, PlannedAction]:
    with ThreadPoolExecutor(max_workers=PARALLEL_READS) as pool:
        found = pool.map(lambda one: plan_object(scene, one), manifests)
        return {manifest.ref.identity: action for manifest, action in zip(manifests, found, strict=True)}


SHOWN = 5


def objection(manifest: Manifest, planned: PlannedAction) -> str:
    """Why what would come of it is not what was reviewed, just these bytes and nothing there before; "" where it is.

    What a schema adds or drops was not seen by anybody while there was no schema (security-rules.md S17).
    """
    ref = planned.ref
    if planned.problem or planned.action is not Action.CREATE:
        return planned.problem or f"{ref} exists already"
    if not planned.is_proved:
        return f"the API server could not be asked what would come of {ref}"
    wrong = sorted(".".join(path) for path in changes(hidden(manifest.body), planned.after))
    if not wrong:
        return ""
    return f"its API makes something else of {ref} than was reviewed: {some(wrong, SHOWN)}"
