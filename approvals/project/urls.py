"""One URL tree: pages at the root, REST under /api/v1, callbacks under /chat."""

from django.urls import include, path, re_path

from approvals.api.resources import NoSuchAddress
from approvals.metrics import metrics

urlpatterns = [
    path("", include("approvals.web.urls")),
    path("api/v1/", include("approvals.api.urls")),
    re_path(r"^api(?:/|$)", NoSuchAddress.as_view(), name="api-nothing"),
    path("chat/", include("approvals.chat.urls")),
    path("metrics", metrics, name="metrics"),
]
handler400 = "approvals.project.crash_pages.not_read"
handler403 = "approvals.web.errors.forbidden"
handler404 = "approvals.web.errors.not_found"
handler500 = "approvals.project.crash_pages.failed"
