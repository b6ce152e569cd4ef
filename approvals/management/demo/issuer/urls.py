"""The issuer's addresses: its document at the top, where issuers have it, and the rest of the toolkit under /o/."""

from django.urls import include, path

from approvals.management.demo.issuer import views

urlpatterns = [
    path("", views.home, name="home"),
    path("sign-in", views.sign_in, name="sign-in"),
    path(".well-known/openid-configuration", views.DiscoveryDocument.as_view()),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]
