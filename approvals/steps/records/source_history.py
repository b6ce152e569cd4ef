"""What the sources of a request were resolved to earlier, from the requests before it."""

from __future__ import annotations

from collections.abc import Iterator

from approvals.bundle_spec import BundleSpec
from approvals.catalogs import bundle_choice
from approvals.models import Outcome, Request, Revision
from approvals.models.request import OBJECT_LENGTH
from provisioner.render import has_releases
from provisioner.review.base.facts import Gone, WayBack
from provisioner.source import GitSource
from provisioner.values import (
    DEPENDENCY,
    Action,
    Content,
    Course,
    EarlierCommit,
    EarlierPin,
    EarlierVersion,
    OutcomeState,
    SourceHistory,
    SourceMove,
)


def of(request: Request, moves: tuple[SourceMove, ...]) -> SourceHistory | None:
    """How the sources moved, which versions and dependencies there were, and which bundles were chosen.

    None where somebody goes back on purpose.
    """
    if request.purpose != Request.Purpose.DEPLOY:
        return None
    earlier: dict[str, EarlierVersion] = {}
    dependencies: list[EarlierPin] = []
    for one, words in _earlier(request):
        pins = (pin for pin in one.pins if pin["kind"] == DEPENDENCY)
        dependencies += [EarlierPin(pin["reference"], pin["digest"], words) for pin in pins]
        if version := one.bundle_version:
            are_both = all(has_releases(it.bundle_spec.format) for it in (one, request))
            earlier.setdefault(version, EarlierVersion(version, words, has_releases=are_both))
    bundles = tuple(bundle_choice.recorded_bundles(request))
    return SourceHistory(moves, tuple(earlier.values()), bundles, tuple(dependencies))


def recorded(request: Request) -> tuple[SourceMove, ...]:
    """As it was found out when the content was fetched."""
    return tuple(SourceMove(**{**one, "course": Course(one["course"])}) for one in request.source_moves)


def earlier_commits(request: Request) -> dict[str, list[EarlierCommit]]:
    """By destination the commits of the same repository that its source was resolved to earlier.

    One that the same branch or tag was resolved to says more than the same commit by another name.
    """
    named = _git_sources(request.bundle_spec)
    found: dict[str, dict[str, EarlierCommit]] = {}
    for one, words in _earlier(request):
        before = _git_sources(one.bundle_spec)
        for pin in one.pins:
            place = str(pin.get("destination", ""))
            now, then = named.get(place), before.get(place)
            if pin["kind"] != "git" or now is None or then is None or now[0] != then[0]:
                continue
            commits = found.setdefault(place, {})
            commit = EarlierCommit(pin["digest"], words, is_followed=now == then and any(now[1:]))
            if commit.commit not in commits or (commit.is_followed and not commits[commit.commit].is_followed):
                commits[commit.commit] = commit
    return {place: list(commits.values()) for place, commits in found.items()}


def _earlier(request: Request) -> Iterator[tuple[Request, str]]:
    """What runs, and the last request that was prepared."""
    active = request.deployment.revisions.filter(state=Revision.State.ACTIVE).select_related("request").first()
    if active:
        yield active.request, f"revision {active.number}"
    rows = request.deployment.requests.filter(number__lt=request.number, purpose=Request.Purpose.DEPLOY)
    last = rows.exclude(pins=[]).order_by("-number").first()
    if last and (active is None or last.pk != active.request_id):
        yield last, f"request {last.number}"


def _git_sources(spec: BundleSpec) -> dict[str, tuple[str, str, str]]:
    """The repository, branch and tag of each git source by destination."""
    found = {}
    for source in spec.sources:
        made = source.remote() if source.kind == "git" else None
        if isinstance(made, GitSource):
            found[source.destination] = (made.repository, made.branch, made.tag)
    return found


TAKING = (Action.DELETE, Action.REPLACE)


def way_back(request: Request, content: Content) -> WayBack | None:
    """The revision that is gone back to, and which objects of its content were deleted or made anew since.

    None for every other request. What is not in `content` is not looked for: it does not come back.
    """
    target = request.to_revision
    if target is None:
        return None
    since = Outcome.objects.filter(
        request__deployment=request.deployment,
        request__revision__number__gt=target.number,
        action__in=TAKING,
        state=OutcomeState.DONE,
    )
    refs = {str(one.ref)[:OBJECT_LENGTH]: one.ref for one in content.manifests}
    rows = since.order_by("request__revision__number", "pk").values_list(
        "object", "action", "request__revision__number"
    )
    gone = {name: Gone(refs[name], Action(action), number) for name, action, number in rows if name in refs}
    return WayBack(target.number, tuple(gone[name] for name in sorted(gone)))
