"""Who comes in: every page asks here that the viewer is signed in and may read the cluster that it shows (S02)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

from approvals import access
from approvals.access import Caller, Permission
from approvals.bundle_spec import parse_spec
from approvals.catalogs.editions import find_catalog
from approvals.errors import InvalidInput, NotFound, ProofTooOld, Refused
from approvals.models import BundleDeployment, Cluster, Request
from approvals.selectors.status import NextStep
from approvals.web import errors
from approvals.web.rendering import caller_of, note_cluster, note_silent, note_too_old, place_of

View = Callable[..., HttpResponse]


def person(http: HttpRequest) -> Caller:
    """Who is asking, of whom the decorators of this module have made sure."""
    caller = caller_of(http)
    assert caller is not None
    return caller


def only_by_form(view: View) -> View:
    """For what changes something; the outermost decorator. Who comes by a link or reloads is shown the way back."""

    @functools.wraps(view)
    def enter(http: HttpRequest, **named: Any) -> HttpResponse:
        return view(http, **named) if http.method == "POST" else errors.only_by_form(http)

    enter.is_only_by_form = True  # type: ignore[attr-defined] # views are marked so, as by csrf_exempt
    return enter


def signed_in(view: View) -> View:
    """For signed-in people only; a refused action becomes a page with its status and its words.

    Whose proof is too old is led to proving it anew, and from there back to the page.
    """

    @functools.wraps(view)
    def enter(http: HttpRequest, **named: Any) -> HttpResponse:
        if caller_of(http) is None:
            return to_sign_in(http)
        try:
            # NUL is refused before anything is asked or written: no database keeps it, and Kubernetes does.
            if any("\0" in str(value) for value in named.values()):
                raise Http404
            for field, texts in (*http.GET.lists(), *http.POST.lists()):
                if any("\0" in str(text) for text in (field, *texts)):
                    raise InvalidInput(
                        f"{field.replace(chr(0), '')} contains a NUL character, which cannot be stored", field=field
                    )
            return view(http, **named)
        except ProofTooOld:
            return to_sign_in(http)
        except Refused as refusal:
            return errors.refused(http, refusal)

    return enter


def to_sign_in(http: HttpRequest) -> HttpResponse:
    """The sign-in page, which says why and comes back; a fragment has the whole page that it stands in led there."""
    if not http.headers.get("HX-Request"):
        return redirect_to_login(place_of(http))
    page = urlsplit(http.headers.get("HX-Current-URL", ""))
    place = urlunsplit(("", "", page.path or "/", page.query, ""))
    target = f"{reverse('sign-in')}?{urlencode({'next': place})}"
    return HttpResponse(status=204, headers={"HX-Redirect": target})


def of_request(view: View) -> View:
    """`view(http, request)` for readers of the cluster of the request whose uid the URL names."""

    @signed_in
    @functools.wraps(view)
    def enter(http: HttpRequest, *, uid: str, **named: Any) -> HttpResponse:
        known = Request.objects.select_related(
            "deployment__cluster", "from_revision__request", "to_revision", "content"
        )
        request = get_object_or_404(known, uid=uid)
        check_reader(http, request.deployment.cluster)
        return view(http, request, **named)

    return enter


def of_deployment(view: View) -> View:
    """`view(http, deployment)` for readers of the cluster that the URL names."""

    @signed_in
    @functools.wraps(view)
    def enter(http: HttpRequest, *, cluster: str, name: str, **named: Any) -> HttpResponse:
        where = get_object_or_404(Cluster, name=cluster)
        check_reader(http, where)
        known = BundleDeployment.objects.filter(cluster=where, name=name).select_related("cluster", "active_revision")
        deployment = (
            known.order_by("gone_at").filter(gone_at__isnull=True).first() or known.order_by("-gone_at").first()
        )
        if deployment is None:
            raise Http404
        return view(http, deployment, **named)

    return enter


def of_catalog(view: View) -> View:
    """`view(http, catalog)` for who may get the Catalog of the name in the URL.

    Who may not is told the same whether there is one of that name or not.
    """

    @signed_in
    @functools.wraps(view)
    def enter(http: HttpRequest, *, cluster: str, name: str, **named: Any) -> HttpResponse:
        where = get_object_or_404(Cluster, name=cluster)
        _check_permission(http, where, access.may_read_catalog(person(http), where, name))
        catalog = find_catalog(where, name)
        if catalog is None:
            raise NotFound(no_catalog(where, name))
        return view(http, catalog, **named)

    return enter


def no_catalog(cluster: Cluster, name: str) -> str:
    """For who may get a Catalog of this name, if there were one."""
    return (
        f"Cluster {cluster.name} has no Catalog {name}: nobody has written one of this name, or it was deleted. Check "
        "the name in the list of catalogs."
    )


def linked_catalogs(
    http: HttpRequest, cluster: Cluster, spec: Mapping[str, Any], taken: Iterable[str] = ()
) -> list[str]:
    """The catalogs that the sources of a spec name, and those `taken` where they select, that are there, and that the
    viewer may open."""
    named = dict.fromkeys([*(catalog.name for catalog in parse_spec(spec).catalogs()), *taken])
    names = [name for name in named if find_catalog(cluster, name)]
    return [name for name in names if access.may_read_catalog(person(http), cluster, name).allowed]


def check_reader(http: HttpRequest, cluster: Cluster) -> None:
    """Raise unless the viewer may read the cluster's requests. Who is nobody there learns not even that it exists."""
    _check_permission(http, cluster, access.may_read(person(http), cluster))


def _check_permission(http: HttpRequest, cluster: Cluster, permission: Permission) -> None:
    if permission.refused and not permission.is_too_old:
        raise Http404
    note_cluster(http, cluster)
    permission.check()


def may_create(http: HttpRequest, clusters: Iterable[Cluster]) -> Permission | None:
    """Whether Kubernetes lets the viewer create a deployment on one of these clusters; the first no where none does."""
    answers = [access.may(person(http), cluster, "create", resource="bundledeployments") for cluster in clusters]
    return next((answer for answer in answers if answer.allowed), answers[0] if answers else None)


def allowed_steps(http: HttpRequest, deployment: BundleDeployment, steps: Iterable[NextStep]) -> list[NextStep]:
    """Return those of the next steps that Kubernetes lets the viewer take; each verb is asked about once."""
    listed = list(steps)
    allowed = {""}
    for verb in sorted({step.verb for step in listed if step.verb}):
        if access.may(
            person(http), deployment.cluster, verb, resource="bundledeployments", name=deployment.name
        ).allowed:
            allowed.add(verb)
    return [step for step in listed if step.verb in allowed]


def readable(http: HttpRequest) -> list[Cluster]:
    """The clusters whose requests the viewer may read; the page names those that could not be asked (promise 4)."""
    return [cluster for cluster, permission in _answers(http) if permission.allowed]


def readable_or_silent(http: HttpRequest) -> list[Cluster]:
    """With those that could not be asked, by name, for a form whose words a cluster gets only when it answers."""
    return [cluster for cluster, permission in _answers(http) if permission.allowed or not permission.could_ask]


def _answers(http: HttpRequest) -> list[tuple[Cluster, Permission]]:
    access.check_fresh(person(http))
    answers = access.read_answers(person(http))
    note_silent(http, [cluster.name for cluster, permission in answers if not permission.could_ask])
    note_too_old(http, [cluster.name for cluster, permission in answers if permission.is_too_old])
    return answers
