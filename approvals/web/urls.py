"""The pages' URLs."""

from django.urls import path

from approvals.web import accounts, inbox, probes, requests

urlpatterns = [
    path("healthz", probes.healthz, name="healthz"),
    path("readyz", probes.readyz, name="readyz"),
    path("sign-in", accounts.sign_in, name="sign-in"),
    path("sign-out", accounts.sign_out, name="sign-out"),
    path("theme", accounts.choose_theme, name="theme"),
    path("", inbox.inbox, name="inbox"),
    path("requests/<uuid:uid>", requests.show, name="request"),
    path("requests/<uuid:uid>/progress", requests.progress, name="request-progress"),
    path("requests/<uuid:uid>/review", requests.review, name="request-review"),
    path("requests/<uuid:uid>/withdraw", requests.withdraw, name="request-withdraw"),
    path("requests/<uuid:uid>/objects", requests.objects, name="request-objects"),
    path("requests/<uuid:uid>/objects/<int:position>", requests.show_object, name="request-object"),
]
