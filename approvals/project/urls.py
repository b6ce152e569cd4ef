"""One URL tree: pages at the root, REST under /api/v1, callbacks under /chat."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("approvals.web.urls")),
    path("api/v1/", include("approvals.api.urls")),
    path("chat/", include("approvals.chat.urls")),
    path("admin/", admin.site.urls),
]
handler403 = "approvals.web.errors.forbidden"
handler404 = "approvals.web.errors.not_found"
handler500 = "approvals.web.errors.failed"
