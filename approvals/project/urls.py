"""One URL tree: pages at the root, REST under /api/v1, callbacks under /chat."""

from django.urls import include, path

from approvals.admin import site

urlpatterns = [
    path("", include("approvals.web.urls")),
    path("api/v1/", include("approvals.api.urls")),
    path("chat/", include("approvals.chat.urls")),
    path("admin/", site.urls),
]
handler403 = "approvals.web.errors.forbidden"
handler404 = "approvals.web.errors.not_found"
handler500 = "approvals.project.failing.failed"
