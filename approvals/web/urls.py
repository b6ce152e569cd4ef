"""The pages' URLs."""

from django.urls import path

from approvals.catalogs import addresses
from approvals.web import audit, clusters, health_endpoints, inbox, me, policies
from approvals.web.catalogs import catalogs, packages
from approvals.web.catalogs import changes as catalog_changes
from approvals.web.deployments import deployments, installing, offers
from approvals.web.requests import activity, findings, pictures, requests
from approvals.web.requests.changes import views as changes
from approvals.web.signing_in import accounts, oidc
from approvals.web.workspace import bulk, news, saved

CATALOG = "catalogs/<slug:cluster>/<str:name>"
PACKAGE = f"{CATALOG}/packages/<{addresses.CONVERTER}:package>"

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
    path("list", inbox.again, name="inbox-list"),
    path("home", news.show, name="news"),
    path("home/list", news.again, name="news-list"),
    path("home/count", news.count, name="news-count"),
    path("home/read", news.mark_read, name="news-read"),
    path("decide", bulk.decide, name="inbox-decide"),
    path("views", saved.save, name="inbox-view-save"),
    path("views/<int:view_id>/remove", saved.remove, name="inbox-view-remove"),
    path("requests/<uuid:uid>", requests.show, name="request"),
    path("requests/<uuid:uid>/progress", requests.progress, name="request-progress"),
    path("requests/<uuid:uid>/review", requests.review, name="request-review"),
    path("requests/<uuid:uid>/reviews/<int:review_id>/dismiss", requests.dismiss, name="request-review-dismiss"),
    path("requests/<uuid:uid>/withdraw", requests.withdraw, name="request-withdraw"),
    path("requests/<uuid:uid>/report.html", requests.report_file, name="request-report"),
    path("requests/<uuid:uid>/changes", changes.index, name="request-changes"),
    path("requests/<uuid:uid>/changes/<int:position>", changes.show, name="request-change"),
    path("requests/<uuid:uid>/changes/<int:position>/lines", changes.lines, name="request-change-lines"),
    path("requests/<uuid:uid>/changes/<int:position>/viewed", changes.viewed, name="request-change-viewed"),
    path("requests/<uuid:uid>/objects", changes.moved, name="request-objects"),
    path("requests/<uuid:uid>/objects/<int:position>", changes.moved, name="request-object"),
    path("requests/<uuid:uid>/findings", findings.index, name="request-findings"),
    path("requests/<uuid:uid>/findings/lines", findings.lines, name="request-finding-lines"),
    path("requests/<uuid:uid>/activity", activity.index, name="request-activity"),
    path("requests/<uuid:uid>/activity/list", activity.follow, name="request-activity-list"),
    path("requests/<uuid:uid>/rights", pictures.rights, name="request-rights"),
    path("requests/<uuid:uid>/schemas", pictures.schemas, name="request-schemas"),
    path("deployments", deployments.index, name="deployments"),
    path("deployments/new", deployments.new, name="deployment-new"),
    path("deployments/new/proposal/again", installing.again, name="deployment-proposal-again"),
    path("deployments/offers", offers.show, name="deployment-offers"),
    path("deployments/<slug:cluster>/<str:name>", deployments.show, name="deployment"),
    path("deployments/<slug:cluster>/<str:name>/progress", deployments.live, name="deployment-progress"),
    path("deployments/<slug:cluster>/<str:name>/edit", deployments.edit, name="deployment-edit"),
    path("deployments/<slug:cluster>/<str:name>/pause", deployments.pause, name="deployment-pause"),
    path("deployments/<slug:cluster>/<str:name>/ask-again", deployments.ask_again, name="deployment-ask-again"),
    path("deployments/<slug:cluster>/<str:name>/rollback", deployments.rollback, name="deployment-rollback"),
    path("deployments/<slug:cluster>/<str:name>/revoke", deployments.revoke, name="deployment-revoke"),
    path("deployments/<slug:cluster>/<str:name>/reinstate", deployments.reinstate, name="deployment-reinstate"),
    path("deployments/<slug:cluster>/<str:name>/delete", deployments.delete, name="deployment-delete"),
    path("catalogs", catalogs.show_catalogs, name="catalogs"),
    path("catalogs/packages", catalogs.show_search, name="catalog-search"),
    path(CATALOG, catalogs.show_catalog, name="catalog"),
    path(f"{CATALOG}/again", catalogs.refresh_catalog, name="catalog-again"),
    path(PACKAGE, packages.show_package, name="catalog-package"),
    path(f"{PACKAGE}/icon", packages.show_icon, name="catalog-icon"),
    path(f"{PACKAGE}/changes", catalog_changes.show_changes, name="catalog-changes"),
    path(f"{PACKAGE}/changes/again", catalog_changes.refresh_changes, name="catalog-changes-again"),
    path(f"{PACKAGE}/changes/objects/<int:position>", catalog_changes.show_lines, name="catalog-changes-lines"),
    path("clusters", clusters.index, name="clusters"),
    path("policies", policies.index, name="policies"),
    path("policies/new", policies.new, name="policy-new"),
    path("policies/of/<slug:name>", policies.show, name="policy"),
    path("policies/of/<slug:name>/edit", policies.edit, name="policy-edit"),
    path("audit", audit.index, name="audit"),
    path("audit/export", audit.export, name="audit-export"),
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
