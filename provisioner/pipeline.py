"""READ FIRST: the stages joined. Content comes in by `prepare`, is looked at by `look`, and enters by `deploy`.

    prepare   sources → pins → trees → manifests → Content       nothing of the cluster but its kinds is needed
    look      Content + cluster → plan, facts → Report            reads only; dry-runs change nothing
    deploy    Content + the reviewed plan → Outcomes              the same bytes, as the identity of the cluster given
    observe   objects → their health
    preflight Content + cluster → may the installing account   reads, and asks for its rights
    remove    everything of an inventory → Outcomes, in reverse order

Each stage is a function of values; keeping them, and asking people in between, is the caller's.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from provisioner import regexes
from provisioner.cluster.apply import run as applying
from provisioner.cluster.client.access import review_self
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import cleaned, masked
from provisioner.cluster.health import observation
from provisioner.cluster.inventory import HookRuns, Inventory, uids
from provisioner.cluster.order import deletion_phases, phases
from provisioner.cluster.plan.comparing import plan_digest
from provisioner.cluster.plan.known import Options
from provisioner.cluster.plan.planning import plan as make_plan
from provisioner.cluster.tracking import RevisionOwner
from provisioner.errors import BadSource, BundleTooLarge, ClusterError, DigestMismatch, PratiqueError, TryLater
from provisioner.expressions import evaluator as expressions
from provisioner.health_checks import HealthCheck
from provisioner.rbac import RbacSubject
from provisioner.reading import (
    all_rbac,
    installer,
    kinds,
    live_objects,
    live_rbac,
    namespaces,
    surroundings,
    with_answers,
    with_rights,
)
from provisioner.render import IsNamespaced, LookedUp, Rendering, Target, content_digest, render_content
from provisioner.review.base.difference import mask_secret
from provisioner.review.base.facts import OWN_NAMESPACE, ClusterSurroundings, Facts, Gap, Stored, WayBack
from provisioner.review.frame import report, wanted
from provisioner.review.output.own_words import in_own_words
from provisioner.review.preflight.answer import Preflight
from provisioner.review.preflight.answer import preflight as answer_preflight
from provisioner.review.preflight.needs import PreflightFacts, ResourceWord
from provisioner.review.rights.permission_report import GroupResource, PermissionReport, permission_report
from provisioner.schema.fields import is_same
from provisioner.source import Credentials, EgressPolicy, GitSource, Source, course, fetch, pinned
from provisioner.unpack import UnpackLimits, unpack
from provisioner.values import (
    APPLYING,
    Action,
    Content,
    Health,
    HelmRelease,
    HookMoment,
    Identity,
    JsonObject,
    Manifest,
    ObjectIdentity,
    ObjectOutcome,
    ObjectRef,
    Pin,
    Plan,
    PlannedAction,
    Report,
    Section,
    SourceHistory,
    SourceMove,
    Tree,
)

FIELD_MANAGER = "pratique"
REVIEW_SECONDS, PATTERN_SECONDS = 60.0, 20.0  # for all rules of schemas that one review runs, and for all patterns
DEADLINE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """How to render: `config` are the format's own options, `install_namespace` the default namespace, `target` what a
    chart is told of the cluster."""

    install_namespace: str
    service_account: str = ""
    format: str = "plain"
    config: Mapping[str, Any] = field(default_factory=dict)
    target: Target | None = None


def prepare(  # noqa: PLR0913 -- everything that decides what the content is, each by its name
    sources: Sequence[Source],
    *,
    options: PrepareOptions,
    egress: EgressPolicy,
    credentials: Credentials | None,
    limits: UnpackLimits,
    is_namespaced: IsNamespaced,
    pins: Sequence[Pin] = (),
) -> Content:
    """Fetch, unpack and render `sources`, once, into the content that is reviewed and applied.

    With `pins` (one per source, in their order) exactly those digests and commits are fetched, whatever the references
    point to now. Raises BadSource (also where two sources put files into the same place), BadBundle and TryLater.
    """
    if not sources:
        raise BadSource("a bundle needs at least one source")
    if pins and len(pins) != len(sources):
        raise BadSource(f"{len(pins)} pins for {len(sources)} sources; expected one for each")
    exact = [pinned(source, pin) for source, pin in zip(sources, pins, strict=True)] if pins else list(sources)
    resolved: list[str] = []
    with resolving(resolved):
        trees: list[tuple[Pin, Tree]] = []
        for number, source in enumerate(exact):
            with _named(f"sources[{number}]" if len(exact) > 1 else ""):
                one = fetch(source, egress=egress, credentials=credentials, max_bytes=limits.max_bytes)
                pin, expected = one.pin, pins[number].digest if pins else one.pin.digest
                resolved.append(pin.digest)
                if pin.digest != expected:
                    raise DigestMismatch(f"{pin.reference}: fetched {pin.digest}; pinned was {expected}")
                trees.append((pin, unpack(one.archives, limits=limits)))
        return _rendered(trees, options, limits, is_namespaced)


def _rendered(
    trees: Sequence[tuple[Pin, Tree]], options: PrepareOptions, limits: UnpackLimits, is_namespaced: IsNamespaced
) -> Content:
    tree = join([(pin.destination, each) for pin, each in trees], limits)
    rendering = Rendering(
        options.format,
        options.install_namespace,
        options.service_account,
        is_namespaced,
        options.config,
        tuple(_folder(pin.destination) for pin, _ in trees),
        target=options.target,
    )
    return render_content(tree, rendering, pins=tuple(pin for pin, _ in trees))


def moves(
    sources: Sequence[Source], pins: Sequence[Pin], earlier: Mapping[str, Mapping[str, str]], *, egress: EgressPolicy
) -> tuple[SourceMove, ...]:
    """How the branches and tags among `sources` moved to where their `pins` are, by the history of each repository.

    `earlier` has the commits of before by destination, each with what names it in words. Never raises for what a
    server does: what could not be found out is a move of unknown course.
    """
    found = []
    for source, pin in zip(sources, pins, strict=True):
        if not isinstance(source, GitSource) or source.commit:
            continue
        name = f"{'branch' if source.branch else 'tag'} {source.branch or source.tag} of {pin.reference}"
        for before, since in earlier.get(pin.destination, {}).items():
            way, why = course(source, before=before, after=pin.digest, egress=egress)
            found.append(SourceMove(name, before, pin.digest, since, way, why))
    return tuple(found)


def target_of(
    cluster: ClusterClient | None, *, is_upgrade: bool, lookups: tuple[LookedUp, ...] | None = None
) -> Target:
    """What a chart is told: the cluster's version, all that it serves, and what it may look up. Without a cluster
    Helm's own defaults count.

    Raises TryLater where the API server does not answer.
    """
    if cluster is None:
        return Target("", (), is_upgrade)
    served = {(f"{one.group}/{one.version}" if one.group else one.version, one.kind) for one in cluster.resources()}
    versions = {version for version, _ in served} | {f"{version}/{kind}" for version, kind in served}
    return Target(cluster.version(), tuple(sorted(versions)), is_upgrade, lookups)


@contextmanager
def resolving(digests: Sequence[str]) -> Iterator[None]:
    """Say with an error what the sources had been resolved to by then."""
    try:
        yield
    except PratiqueError as exc:
        exc.resolved = exc.resolved or tuple(digests)
        raise


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Say of which of several an error is."""
    try:
        yield
    except PratiqueError as exc:
        if what:
            exc.args = (f"{what}: {exc}",)
        raise


def join(trees: Iterable[tuple[str, Tree]], limits: UnpackLimits) -> Tree:
    """One tree of several, each under its destination; "" is the root.

    Raises BadSource where two sources put something into the same place: nobody could say which one counts.
    """
    placed: list[tuple[str, Tree]] = []
    for destination, tree in trees:
        folder = _folder(destination)
        if folder in {known for known, _ in placed}:
            raise BadSource(f"two sources have the destination {folder or '/'}; expected one for each")
        placed.append((folder, tree))
    files: dict[str, bytes] = {}
    for folder, tree in placed:
        inner = [other for other, _ in placed if other != folder and other.startswith(f"{folder}/" if folder else "")]
        for path, data in tree.files.items():
            whole = f"{folder}/{path}" if folder else path
            taken = next((other for other in inner if whole == other or whole.startswith(f"{other}/")), None)
            if taken is not None:
                raise BadSource(f"{whole} lies in {taken}, the destination of another source")
            files[whole] = data
    total = sum(map(len, files.values()))
    if total > limits.max_bytes:
        raise BundleTooLarge(f"all sources together are {total} bytes; the limit max_bytes is {limits.max_bytes}")
    return Tree(files)


def _folder(destination: str) -> str:
    folder = destination.strip("/")
    if folder and (posixpath.normpath(folder) != folder or folder.split("/")[0] == ".." or "\\" in folder):
        raise BadSource(f"destination {destination!r}: expected a plain folder such as extra/more")
    return folder


@expressions.limited(REVIEW_SECONDS)
@regexes.limited(PATTERN_SECONDS)
def look(  # noqa: PLR0913 -- each by its name
    cluster: ClusterClient,
    content: Content,
    *,
    previous: Content | None,
    inventory: Mapping[ObjectIdentity, str],
    as_account: Identity | None = None,
    own_namespace: str = OWN_NAMESPACE,
    installers: frozenset[tuple[str, str]] = frozenset(),
    allowed_images: tuple[str, ...] = (),
    options: Options | None = None,
    way_back: WayBack | None = None,
    history: SourceHistory | None = None,
    is_for_reader: bool = False,
) -> Report:
    """What `content` would do to the cluster. Nothing is changed.

    The plan is made as `as_account`, who will apply it, with `options`; everything else is read as the identity of
    `cluster`, and as the account only where that one may not. Whether the account, a ServiceAccount, has the rights is
    a part of the report; without `as_account` only the dry-runs say so. `previous` is what runs, `inventory` what is
    ours: the uid by identity. `own_namespace` is where Pratique itself runs, `installers` are the accounts by which it
    applies other bundles, `allowed_images` says where images may come from (`ClusterSurroundings`). `way_back` says
    what `content` ran as before, `history` what its sources named earlier. `is_for_reader` where nobody else reads the
    report than who `cluster` is asked as: nothing of what they could read is withheld, and what is somebody else's is
    planned as if it were adopted. Else that stands in the way, and what would come of it is told apart for who may get
    it (S09).

    Raises TryLater where the API server does not answer; what it refuses becomes a finding.
    """
    options = replace(options or Options(), supposes_adoption=is_for_reader, tells_adoption=not is_for_reader)
    plan = plan_again(cluster, content, previous=previous, inventory=inventory, as_account=as_account, options=options)
    left = tuple(sorted(one.ref for one in options.hooks.values() if one.uid)) if options.is_removal else ()
    content = content.with_hooks(options.moments)
    previous = previous.with_hooks(APPLYING) if previous else None
    readers = (cluster, cluster.acting_as(as_account)) if as_account else (cluster,)
    live, gaps = live_objects(readers, wanted(content, plan))
    roles, more = live_rbac(readers)
    around = replace(kinds(cluster, own_namespace), installers=installers, allowed_images=allowed_images)
    facts = Facts(content, plan, previous, live, roles, (*gaps, *more), around=around, way_back=way_back)
    bundle = None if is_for_reader else _plan_offline(content, previous)
    facts = replace(facts, installer=installer(as_account), bundle=bundle, left_by_hooks=left)
    facts = replace(facts, history=history or SourceHistory())
    facts = replace(facts, around=surroundings(readers, facts))
    found = report(with_rights(cluster, facts))
    return in_own_words(found) if is_for_reader else found


def plan_again(  # noqa: PLR0913 -- each by its name
    cluster: ClusterClient,
    content: Content,
    *,
    previous: Content | None,
    inventory: Mapping[ObjectIdentity, str],
    as_account: Identity | None = None,
    options: Options | None = None,
    reviewed: Plan | None = None,
) -> Plan:
    """The plan that `look` would make now, without reading what only a report needs.

    `reviewed` is the plan that `look` made of the same content: only what has moved since then is planned anew.
    """
    options = replace(options or Options(), reviewed=reviewed)
    account = cluster.acting_as(as_account) if as_account else cluster
    return make_plan(
        account,
        content.with_hooks(options.moments),
        inventory=inventory,
        previous=previous,
        field_manager=FIELD_MANAGER,
        options=options,
    )


def part_of(content: Content, wanted: Collection[ObjectIdentity]) -> Content:
    """Only those objects of `content`, without hooks, with the digest that belongs to them."""
    manifests = tuple(one for one in content.manifests if one.ref.identity in wanted)
    digest = content_digest(
        manifests, install_namespace=content.install_namespace, service_account=content.service_account
    )
    return replace(content, manifests=manifests, digest=digest, hooks=())


def permissions(
    cluster: ClusterClient | None,
    content: Content,
    previous: Content | None,
    *,
    nowhere: frozenset[GroupResource] = frozenset(),
) -> PermissionReport:
    """Who may do what with `content` in place of `previous` that they could not before, by RBAC alone.

    With a cluster its other roles and bindings count; without one, only those of the two bundles are known. What is
    `nowhere`, as it is in no namespace, nobody gets by a RoleBinding.
    """
    roles, gaps = live_rbac((cluster,)) if cluster else (None, [])
    content, previous = _offline(content, previous)
    facts = Facts(content, _plan_offline(content, previous), previous, live_rbac=roles, is_offline=True)
    found = permission_report(facts, nowhere=nowhere)
    return replace(found, problems=(*found.problems, *(f"{gap.what}: {gap.why}" for gap in gaps)))


def roles_and_bindings(cluster: ClusterClient) -> tuple[JsonObject, ...]:
    """All of the cluster. Raises ClusterError where one of the four kinds may not be listed, or nobody answers."""
    return all_rbac(cluster)


@expressions.limited(REVIEW_SECONDS)
@regexes.limited(PATTERN_SECONDS)
def look_offline(
    content: Content,
    previous: Content | None,
    *,
    allowed_images: tuple[str, ...] = (),
    stored: Stored | None = None,
) -> Report:
    """What differs between two bundles, without a cluster: from `previous`, or from nothing, to `content`.

    `stored` are the objects that changed CRDs are tried on, where somebody knows them.
    """
    around = ClusterSurroundings(allowed_images=allowed_images)
    content, previous = _offline(content, previous)
    plan = _plan_offline(content, previous)
    return report(Facts(content, plan, previous, is_offline=True, around=around, stored=stored))


def preflight(  # noqa: PLR0913 -- each by its name
    cluster: ClusterClient | None,
    content: Content,
    *,
    account: RbacSubject,
    previous: Content | None = None,
    inventory: Mapping[ObjectIdentity, str] | None = None,
    options: Options | None = None,
) -> Preflight:
    """Whether the ServiceAccount `account` may do all that `content` needs. Nothing is changed.

    By the roles and bindings of the cluster, confirmed by the API server where they deny something, and by dry-runs as
    the account. `options` are those of its plan. Without a cluster: what it would have to hold. Raises TryLater where
    nobody answers.
    """
    options = options or Options(is_removal=not content.manifests)
    content = content.with_hooks(options.moments)
    staying = [one for phase in phases(content.manifests) for one in phase.manifests]
    facts = PreflightFacts(account, (*staying, *(one for one in content.manifests if one.hook)))
    if cluster is None:
        return answer_preflight(facts)
    roles, gaps = live_rbac((cluster,))
    places, more = namespaces(cluster)
    actions, unplanned = _planned(
        cluster, content, account, inventory=inventory or {}, previous=previous, options=options
    )
    gaps = [*gaps, *more, *unplanned]
    facts = replace(facts, roles=roles, namespaces=places, kinds=_served(cluster), actions=actions, gaps=tuple(gaps))
    return answer_preflight(with_answers(cluster, facts))


def least_rights(
    cluster: ClusterClient, content: Content, *, account: RbacSubject, with_deletion: bool = False
) -> Preflight:
    """All that `account` needs to install `content` where nothing of it is yet, as if it held nothing: what is missing.

    The cluster says which kinds, namespaces and roles there are. Nothing is changed. Raises TryLater where nobody
    answers.
    """
    content = content.with_hooks(frozenset(HookMoment) if with_deletion else APPLYING)
    staying = [one for phase in phases(content.manifests) for one in phase.manifests]
    roles, gaps = live_rbac((cluster,))
    known = None if roles is None else tuple(one for one in roles if not str(one["kind"]).endswith("Binding"))
    places, more = namespaces(cluster)
    facts = PreflightFacts(
        account,
        (*staying, *(one for one in content.manifests if one.hook)),
        roles=known,
        kinds=_served(cluster),
        namespaces=None if places is None else places | {account.namespace},
        gaps=(*gaps, *more),
        unanswered=frozenset(group for group, _ in cluster.served().unknown),
        with_deletion=with_deletion,
    )
    return answer_preflight(facts)


def _served(cluster: ClusterClient) -> dict[tuple[str, str, str], ResourceWord]:
    return {
        (one.group, one.version, one.kind): ResourceWord(one.plural, one.is_namespaced) for one in cluster.resources()
    }


def _planned(  # noqa: PLR0913 -- each by its name
    cluster: ClusterClient,
    content: Content,
    account: RbacSubject,
    *,
    inventory: Mapping[ObjectIdentity, str],
    previous: Content | None,
    options: Options,
) -> tuple[dict[ObjectIdentity, PlannedAction], list[Gap]]:
    """The plan as the account, by identity; none where nobody may act as the account."""
    acting = cluster.acting_as(account.identity)
    try:
        review_self(acting)
    except TryLater:
        raise
    except ClusterError as exc:
        return {}, [Gap("what a dry-run as the account says", str(exc), Section.PREFLIGHT)]
    plan = make_plan(
        acting,
        content,
        inventory=inventory,
        previous=previous,
        field_manager=FIELD_MANAGER,
        options=options,
    )
    return {one.ref.identity: one for one in plan.actions}, []


def deploy(  # noqa: PLR0913 -- each by its name
    cluster: ClusterClient,
    content: Content,
    plan: Plan,
    *,
    inventory: Inventory,
    deadline_seconds: float = DEADLINE_SECONDS,
    observer: ClusterClient | None = None,
    before_phase: Callable[[str], None] | None = None,
    at_phase: Callable[[applying.PhaseReached], None] | None = None,
    before_wait: Callable[[Sequence[ObjectRef]], None] | None = None,
    while_waiting: Callable[[], None] | None = None,
    checks: Sequence[HealthCheck] = (),
    owner: RevisionOwner | None = None,
    moments: frozenset[HookMoment] = APPLYING,
    runs: HookRuns | None = None,
    helm_release: HelmRelease | None = None,
) -> Iterator[ObjectOutcome]:
    """Do what the reviewed `plan` says, as the identity of `cluster`: one ObjectOutcome per object, as they happen.

    The manifests are hashed again first: DigestMismatch where they are not those of `content.digest`, before anything
    is touched. PlanChanged, PreconditionFailed and the rest as in cluster.apply. `observer` is who watches health, by
    default `cluster`; `before_phase` is called with each phase's name right before its first write, and after each wait
    within it, and keeps what follows from being written by raising; `at_phase` hears of each first; `before_wait` with
    the objects that are given time to settle, `while_waiting` every few seconds of any wait, which it ends by raising.
    What `checks` select is Current by them before a later phase begins. What is written names `owner`. Of the hooks
    those of `moments` run, and `runs` is their record. `helm_release` is what adopted objects are taken over from.
    """
    found = content_digest(
        content.everything, install_namespace=content.install_namespace, service_account=content.service_account
    )
    if found != content.digest:
        raise DigestMismatch(f"the manifests to apply have digest {found}; reviewed was {content.digest}")
    terms = applying.Terms(FIELD_MANAGER, deadline_seconds, observer=observer, checks=checks, owner=owner, runs=runs)
    terms = replace(terms, helm_release=helm_release)
    terms = replace(terms, before_phase=before_phase) if before_phase else terms
    terms = replace(terms, at_phase=at_phase) if at_phase else terms
    terms = replace(terms, before_wait=before_wait) if before_wait else terms
    terms = replace(terms, while_waiting=while_waiting) if while_waiting else terms
    return applying.apply(cluster, content.with_hooks(moments), plan, inventory, terms)


def observe(
    cluster: ClusterClient, refs: Iterable[ObjectRef], *, checks: Sequence[HealthCheck] = ()
) -> dict[ObjectRef, Health]:
    """The health of each object, read once, with reasons in words; `checks` are the deployment's own.

    What may not be read is Unknown; raises TryLater if nobody answers.
    """
    return observation.observe(cluster, refs, now=datetime.now(UTC), checks=checks)


def remove(
    cluster: ClusterClient, inventory: Inventory, *, deadline_seconds: float = DEADLINE_SECONDS
) -> Iterator[ObjectOutcome]:
    """Delete everything that `inventory` holds, in reverse order, each object only if it is still the one that is ours.

    For the command line and for tests; in the service a deletion is a request with a reviewed plan (S15).
    """
    nothing = Content((), "", "", (), content_digest((), install_namespace="", service_account=""))
    owned = uids(inventory.items().values())
    options = Options(is_removal=True)
    plan = make_plan(cluster, nothing, inventory=owned, previous=None, field_manager=FIELD_MANAGER, options=options)
    return deploy(cluster, nothing, plan, inventory=inventory, deadline_seconds=deadline_seconds)


def _plan_offline(content: Content, previous: Content | None) -> Plan:
    """A plan as if the cluster held exactly `previous`. Its objects have no uid, so nothing can apply it."""
    old = {one.ref.identity: one for one in (previous.manifests if previous else ())}
    staying = [one for phase in phases(content.manifests) for one in phase.manifests]
    hooks = [one for one in content.manifests if one.hook]
    actions = [_planned_offline(one, old.get(one.ref.identity)) for one in (*staying, *hooks)]
    wished = {one.ref.identity for one in content.manifests}
    going = [one.ref for identity, one in old.items() if identity not in wished and one.hook is None]
    for deletions in deletion_phases(going, {identity: one.body for identity, one in old.items()}):
        for ref in deletions.refs:
            before, _ = _masked(old[ref.identity].body, None)
            actions.append(PlannedAction(ref, Action.DELETE, before=before, is_proved=False))
    return Plan(tuple(actions), plan_digest(actions))


def _offline(content: Content, previous: Content | None) -> tuple[Content, Content | None]:
    """Both with the hooks that run when they are applied."""
    return content.with_hooks(APPLYING), previous.with_hooks(APPLYING) if previous else None


def _planned_offline(manifest: Manifest, old: Manifest | None) -> PlannedAction:
    body = manifest.body
    before, after = _masked(old.body if old else None, body)
    action = Action.CREATE
    if manifest.hook:
        action = Action.RERUN if old else Action.CREATE
    elif old is not None:
        action = Action.NONE if is_same(cleaned(old.body), cleaned(body)) else Action.UPDATE
    return PlannedAction(ObjectRef.of(body), action, before=before, after=after, is_proved=False)


def _masked(before: JsonObject | None, after: JsonObject | None) -> tuple[JsonObject | None, JsonObject | None]:
    """As cluster.compare masks, but for Secrets of a shape that no server would take: of those nothing is told."""
    parts = [one.get(key) or {} for one in (before, after) if one for key in ("data", "stringData")]
    if all(isinstance(part, Mapping) for part in parts):
        return masked(before, after)
    shown = [mask_secret(cleaned(one)) if one else None for one in (before, after)]
    return shown[0], shown[1]
