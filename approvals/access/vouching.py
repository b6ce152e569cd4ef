"""Whose word about people the operator believes now: an authenticator that was taken away counts no longer at once."""

from __future__ import annotations

from django.conf import settings

from approvals.models import KubernetesIdentity
from approvals.oidc import Issuers
from approvals.proxies import IdentityProxies

OIDC, PROXY = KubernetesIdentity.Authenticator.OIDC, KubernetesIdentity.Authenticator.PROXY


def may_still_count(authenticator: str, issuer: str, cluster: str) -> bool:
    """The same, of what was proved before. A process that is told of no issuer and no proxy at all, such as a worker,
    goes by the age of the proof alone (S25)."""
    is_told = any(settings.PRATIQUE["OIDC_FILE"]) or any(settings.PRATIQUE["IDENTITY_PROXIES_FILE"])
    return not is_told or may_vouch(authenticator, issuer, cluster)


def may_vouch(authenticator: str, issuer: str, cluster: str) -> bool:
    """Whether `issuer`, the address of one or the name of a proxy, still counts on the cluster of this name."""
    if authenticator == OIDC:
        issuers: Issuers = settings.PRATIQUE["OIDC_FILE"]
        known = issuers.with_url(issuer)
        return known is not None and known.rules_on(cluster) is not None
    if authenticator == PROXY:
        proxies: IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
        named = proxies.named(issuer)
        return named is not None and named.names_on(cluster) is not None
    return True
