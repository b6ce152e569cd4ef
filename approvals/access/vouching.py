"""Whose word about people the operator believes now: an authenticator that was taken away counts no longer at once."""

from __future__ import annotations

from django.conf import settings

from approvals.models import KubernetesIdentity
from approvals.oidc import Issuers
from approvals.proxies import IdentityProxies

OIDC, PROXY = KubernetesIdentity.Authenticator.OIDC, KubernetesIdentity.Authenticator.PROXY


def may_vouch(authenticator: str, issuer: str, cluster: str) -> bool:
    """Whether `issuer` still counts on the cluster of this name: an issuer's address, or what a proxy vouches as.

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
        return any(proxy.names_on(cluster) for proxy in proxies.vouching_as(issuer))
    return True


def also_known_as(issuer: str, subject: str) -> frozenset[tuple[str, str]]:
    """What else the same person may be recorded as: from before a proxy was said to have an issuer's people."""
    proxies: IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
    return proxies.also_known_as(issuer, subject)
