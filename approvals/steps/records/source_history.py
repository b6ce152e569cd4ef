"""What the sources of a request were resolved to earlier, from the requests before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from approvals.catalogs import bundle_choice
from approvals.models import Request, Revision
from approvals.source_refs import body_of, listed_sources
from provisioner.render import has_releases
from provisioner.values import Course, EarlierCommit, EarlierVersion, SourceHistory, SourceMove


def of(request: Request, moves: tuple[SourceMove, ...]) -> SourceHistory | None:
    """How the sources moved, which versions there were, and which bundles were chosen.

    None where somebody goes back on purpose.
    """
    if request.purpose != Request.Purpose.DEPLOY:
        return None
    earlier: dict[str, EarlierVersion] = {}
    for one, words in _earlier(request):
        if version := one.bundle_version:
            are_both = all(has_releases(str(it.spec.get("format") or "")) for it in (one, request))
            earlier.setdefault(version, EarlierVersion(version, words, has_releases=are_both))
    return SourceHistory(moves, tuple(earlier.values()), tuple(bundle_choice.recorded_bundles(request)))


def recorded(request: Request) -> tuple[SourceMove, ...]:
    """As it was found out when the content was fetched."""
    return tuple(SourceMove(**{**one, "course": Course(one["course"])}) for one in request.source_moves)


def earlier_commits(request: Request) -> dict[str, list[EarlierCommit]]:
    """By destination the commits of the same repository that its source was resolved to earlier.

    One that the same branch or tag was resolved to says more than the same commit by another name.
    """
    named = _named(request.spec)
    found: dict[str, dict[str, EarlierCommit]] = {}
    for one, words in _earlier(request):
        before = _named(one.spec)
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


def _named(spec: Mapping[str, Any]) -> dict[str, tuple[str, str, str]]:
    """The repository, branch and tag of each git source by destination."""
    found = {}
    for source in listed_sources(spec):
        if source.get("kind") == "git":
            body = body_of(source)
            ref = body.get("ref") or {}
            names = (str(body.get("repository")), str(ref.get("branch") or ""), str(ref.get("tag") or ""))
            found[str(source.get("destination") or "")] = names
    return found
