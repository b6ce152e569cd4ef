"""The pictures of a report: how an account comes by its rights, and where in its schema a custom resource changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import access
from approvals.access import Permission
from approvals.models import Report, Request
from approvals.selectors import pages
from approvals.web.access_decorators import of_request, person
from approvals.web.rendering import page
from approvals.web.requests.bar import bar_of
from approvals.web.requests.sharing import visible_report
from approvals.web.requests.viewer_options import options_of
from provisioner.api_groups import RBAC_GROUP
from provisioner.review.crds.schema_tree import crds_of, picture_of
from provisioner.review.rights.account_graph import account_graph, accounts_of
from provisioner.schema.definition.crd import Crd
from provisioner.values import GroupKind

RIGHTS = (
    GroupKind("", "ServiceAccount"),
    *(GroupKind(RBAC_GROUP, kind) for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")),
)
SCHEMAS = (GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),)


@require_safe
@of_request
def rights(http: HttpRequest, request: Request) -> HttpResponse:
    """One account, `?account=`, with its bindings, roles and rules before and after; the worst of them by default."""
    report = _report_or_404(request)
    shown, hidden = visible_report(person(http), request.deployment.cluster, report, kinds=RIGHTS)
    by_name = {str(subject): subject for subject in accounts_of(shown)}
    name = http.GET.get("account") or next(iter(by_name), "")
    if name and name not in by_name:
        raise Http404
    seen = {ref.identity for ref in hidden}
    graph = account_graph(shown, by_name[name], hidden=seen) if name else None
    facts = {"names": list(by_name), "graph": graph, "chosen": name}
    return page(http, "pictures/request_rights.html", {**_standing(http, request, report), **facts})


@require_safe
@of_request
def schemas(http: HttpRequest, request: Request) -> HttpResponse:
    """One custom resource definition, `?crd=`, with the changed branches of each version; the worst by default."""
    caller, cluster = person(http), request.deployment.cluster
    report = _report_or_404(request)
    shown, hidden = visible_report(caller, cluster, report, kinds={*SCHEMAS, *_defined_kinds(report)})
    by_name = {planned.ref.name: planned for planned in crds_of(shown)}
    name = http.GET.get("crd") or next(iter(by_name), "")
    if name and name not in by_name:
        raise Http404
    planned = by_name.get(name)
    permission = Permission(True, "the object is new")
    if planned and planned.ref in hidden:
        permission = access.may_see_object(caller, cluster, planned.ref)
    picture = picture_of(shown, planned) if planned and permission.allowed else None
    facts = {"names": list(by_name), "picture": picture, "chosen": name, "permission": permission, "planned": planned}
    return page(http, "pictures/request_schemas.html", {**_standing(http, request, report), **facts})


def _defined_kinds(report: Report) -> Iterator[GroupKind]:
    """The kinds of the custom resources whose definitions a report plans: findings about schemas are made of them."""
    for planned in report.body["plan"]["actions"]:
        ref = planned["ref"]
        if GroupKind(ref["group"], ref["kind"]) in SCHEMAS:
            for definition in filter(None, (planned["before"], planned["after"])):
                crd = Crd(definition)
                yield GroupKind(crd.group, str(crd.names.get("kind") or ""))


def _standing(http: HttpRequest, request: Request, report: Report) -> dict[str, Any]:
    """What the title, the bar and the tabs need."""
    caller, reviews = person(http), pages.reviews_of(request)
    bar, may = bar_of(caller, request, report, reviews), options_of(caller, request, report, reviews)
    return {"item": request, "report": report, "bar": bar, "may": may}


def _report_or_404(request: Request) -> Report:
    report = pages.report_of(request)
    if report is None:
        raise Http404
    return report
