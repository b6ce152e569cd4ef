"""The pages' URLs."""

from django.urls import path

from approvals.web import audit, clusters, health_endpoints, inbox, me, policies
from approvals.web.deployments import deployments
from approvals.web.requests import findings, pictures, requests
from approvals.web.signing_in import accounts, oidc

urlpatterns = [
    path("healthz", health_endpoints.healthz, name="healthz"),
    path("readyz", health_endpoints.readyz, name="readyz"),
    path("sign-in", accounts.sign_in, name="sign-in"),
    path("sign-out", accounts.sign_out, name="sign-out"),
    path("oidc/<slug:name>", oidc.leave, name="oidc-leave"),
    path("oidc/<slug:name>/callback", oidc.come_back, name="oidc-callback"),
    path("oidc/<slug:name>/back-channel", oidc.back_channel, name="oidc-back-channel"),
    path("oidc/<slug:name>/front-channel", oidc.front_channel, name="oidc-front-channel"),
    path("theme", accounts.choose_theme, name="theme"),
    path("", inbox.inbox, name="inbox"),
    path("requests/<uuid:uid>", requests.show, name="request"),
    path("requests/<uuid:uid>/progress", requests.progress, name="request-progress"),
    path("requests/<uuid:uid>/review", requests.review, name="request-review"),
    path("requests/<uuid:uid>/withdraw", requests.withdraw, name="request-withdraw"),
    path("requests/<uuid:uid>/report.html", requests.report_file, name="request-report"),
    path("requests/<uuid:uid>/objects", requests.objects, name="request-objects"),
    path("requests/<uuid:uid>/objects/<int:position>", requests.show_object, name="request-object"),
    path("requests/<uuid:uid>/findings", findings.index, name="request-findings"),
    path("requests/<uuid:uid>/rights", pictures.rights, name="request-rights"),
    path("requests/<uuid:uid>/schemas", pictures.schemas, name="request-schemas"),
    path("deployments", deployments.index, name="deployments"),
    path("deployments/new", deployments.new, name="deployment-new"),
    path("deployments/<slug:cluster>/<str:name>", deployments.show, name="deployment"),
    path("deployments/<slug:cluster>/<str:name>/edit", deployments.edit, name="deployment-edit"),
    path("deployments/<slug:cluster>/<str:name>/pause", deployments.pause, name="deployment-pause"),
    path("deployments/<slug:cluster>/<str:name>/ask-again", deployments.ask_again, name="deployment-ask-again"),
    path("deployments/<slug:cluster>/<str:name>/rollback", deployments.rollback, name="deployment-rollback"),
    path("deployments/<slug:cluster>/<str:name>/revoke", deployments.revoke, name="deployment-revoke"),
    path("deployments/<slug:cluster>/<str:name>/reinstate", deployments.reinstate, name="deployment-reinstate"),
    path("deployments/<slug:cluster>/<str:name>/delete", deployments.delete, name="deployment-delete"),
    path("clusters", clusters.index, name="clusters"),
    path("policies", policies.index, name="policies"),
    path("policies/new", policies.new, name="policy-new"),
    path("policies/of/<slug:name>", policies.show, name="policy"),
    path("policies/of/<slug:name>/edit", policies.edit, name="policy-edit"),
    path("audit", audit.index, name="audit"),
    path("me", me.show, name="me"),
    path("me/tokens", me.create_token, name="token-create"),
    path("me/tokens/<int:token_id>/revoke", me.revoke_token, name="token-revoke"),
    path("me/sessions/end-others", me.end_others, name="sessions-end-others"),
    path("me/sessions/<int:sign_in_id>/end", me.end_session, name="session-end"),
    path("me/identities", me.link_identity, name="identity-link"),
    path("me/identities/<int:identity_id>/unlink", me.unlink_identity, name="identity-unlink"),
    path("me/chat", me.link, name="chat-link"),
    path("me/chat/<int:account_id>/unlink", me.unlink, name="chat-unlink"),
]
