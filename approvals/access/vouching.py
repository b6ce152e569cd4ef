"""Whose word about people the operator believes now: an authenticator that was taken away counts no longer at once."""

from __future__ import annotations

from django.conf import settings

from approvals.models import KubernetesIdentity
from approvals.oidc import Issuers
from approvals.proxies import IdentityProxies

OIDC, PROXY = KubernetesIdentity.Authenticator.OIDC, KubernetesIdentity.Authenticator.PROXY


def may_vouch(authenticator: str, issuer: str, cluster: str) -> bool:
    """Whether `issuer`, the address of one or the name of a proxy, still counts on the cluster of this name.

    A worker has no files of issuers and proxies (S31): there, proofs count by their age alone (S25).
    """
    if settings.PRATIQUE["ISSUERS_ELSEWHERE"]:
        return True
    if authenticator == OIDC:
        issuers: Issuers = settings.PRATIQUE["OIDC_FILE"]
        known = issuers.with_url(issuer)
        return known is not None and known.rules_on(cluster) is not None
    if authenticator == PROXY:
        proxies: IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
        named = proxies.named(issuer)
        return named is not None and named.names_on(cluster) is not None
    return True
