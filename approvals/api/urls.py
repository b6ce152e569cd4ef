"""The REST API's URLs."""

from typing import Any

from django.urls import URLPattern, include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import IsAuthenticated
from rest_framework.routers import SimpleRouter

from approvals.api import catalogs, deciding, external_checks, notifications, policies, resources, sets, sign_in
from approvals.api.authentication import InScope
from approvals.catalogs import addresses
from approvals.deciding.external_checks import ExternalCheck
from approvals.deciding.kinds import DecidingKind
from approvals.deciding.table import KINDS

router = SimpleRouter(trailing_slash=False)
router.register("clusters", resources.ClusterViewSet, basename="api-cluster")
router.register("deployments", resources.DeploymentViewSet, basename="api-deployment")
router.register("requests", resources.RequestViewSet, basename="api-request")
router.register("sets", sets.SetViewSet, basename="api-set")
router.register("policies", policies.PolicyViewSet, basename="api-policy")
router.register("notification-targets", notifications.NotificationTargetViewSet, basename="api-notification-target")
router.register("audit", resources.AuditViewSet, basename="api-audit")
router.register("tokens", sign_in.TokenViewSet, basename="api-token")
router.register("sign-in", sign_in.SignInViewSet, basename="api-sign-in")

# These two are read; their renderers have no form for the answer to OPTIONS.
SIGNED_IN = {"permission_classes": [IsAuthenticated, InScope], "http_method_names": ["get", "head"]}

CATALOG = "catalogs/<str:cluster>/<str:name>"
PACKAGE = f"{CATALOG}/packages/<{addresses.CONVERTER}:package>"


def _catalog(address: str, action: str, suffix: str, *, detail: bool = True, **writing: str) -> URLPattern:
    view = catalogs.CatalogViewSet.as_view({"get": action, **writing}, basename="api-catalog", detail=detail)
    return path(address, view, name=f"api-catalog-{suffix}")


def _deciding(kind: type[DecidingKind]) -> list[URLPattern]:
    """The objects of a kind in a cluster, and one of them."""
    address = f"clusters/<str:cluster>/{kind.slug}"
    many: dict[str, Any] = {"get": "list", "post": "create"}
    one: dict[str, Any] = {"get": "retrieve", "put": "update", "delete": "destroy"}
    view = deciding.DecidingViewSet.as_view
    base = {"basename": f"api-{kind.slug}", "of": kind}
    confirm = path(
        f"{address}/<str:name>/confirm", view({"post": "confirm"}, detail=True, **base), name=f"api-{kind.slug}-confirm"
    )
    return [
        path(address, view(many, detail=False, **base), name=f"api-{kind.slug}-list"),
        path(f"{address}/<str:name>", view(one, detail=True, **base), name=f"api-{kind.slug}-detail"),
        *([confirm] if kind.needs_people else []),
    ]


patterns = [
    *router.urls,
    path(
        "policy-tests",
        policies.PolicyTestViewSet.as_view({"post": "create"}, basename="api-policy-test"),
        name="api-policy-tests",
    ),
    _catalog("catalogs", "list", "list", detail=False),
    _catalog(CATALOG, "retrieve", "detail"),
    _catalog(f"{CATALOG}/packages", "packages", "packages"),
    _catalog(PACKAGE, "package", "package"),
    _catalog(f"{PACKAGE}/changes", "comparison", "changes", post="compare"),
    _catalog(f"{PACKAGE}/changes/objects/<int:position>", "compared_lines", "lines"),
    *(pattern for kind in KINDS for pattern in _deciding(kind)),
    path(
        f"clusters/<str:cluster>/{ExternalCheck.slug}/<str:name>/secret",
        external_checks.ExternalCheckViewSet.as_view(
            {"post": "secret"}, basename="api-external-checks", detail=True, of=ExternalCheck
        ),
        name="api-external-checks-secret",
    ),
    path(
        "checks/<uuid:run>",
        external_checks.CheckRunViewSet.as_view({"post": "answer"}, basename="api-check-run", detail=True),
        name="api-check-run",
    ),
]
urlpatterns = [
    path("", include(patterns)),
    path("schema", SpectacularAPIView.as_view(**SIGNED_IN), name="api-schema"),
    # Split: the page's script is a file of its own, as the Content-Security-Policy wants it.
    path("docs", SpectacularSwaggerSplitView.as_view(url_name="api-schema", **SIGNED_IN), name="api-docs"),
    re_path(r"", resources.NoSuchAddress.as_view(), name="api-nothing"),
]
