"""The REST API's URLs."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView
from rest_framework.routers import SimpleRouter

from approvals.api import views

router = SimpleRouter(trailing_slash=False)
router.register("clusters", views.ClusterViewSet, basename="api-cluster")
router.register("deployments", views.DeploymentViewSet, basename="api-deployment")
router.register("requests", views.RequestViewSet, basename="api-request")
router.register("policies", views.PolicyViewSet, basename="api-policy")
router.register("audit", views.AuditViewSet, basename="api-audit")

urlpatterns = [
    path("", include(router.urls)),
    path("schema", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs", SpectacularSwaggerView.as_view(url_name="api-schema"), name="api-docs"),
]
