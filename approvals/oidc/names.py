"""Whom an issuer's claims mean on a cluster: the rules of its API server, without its expressions.

Source of the rules: Kubernetes, "Authenticating", OpenID Connect Tokens and structured authentication configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from approvals.oidc.issuers import ClusterRules
from provisioner.values import Identity

RESERVED = "system:"
MAX_GROUPS = 1000
MAX_CHARACTERS = 253
OVERAGE = (
    "the issuer sent no groups because they do not fit in a token; configure it to send only the groups that count"
    " on this cluster"
)
NO_GROUPS_CLAIM = "the issuer sent no claim {claim}, so the groups are unknown; request the scope that provides it"


class ClaimsRefused(Exception):
    """These claims make nobody on this cluster; the message says which claim and why."""


@dataclass(frozen=True, slots=True)
class NamedIdentity:
    """`groups_unknown` says why nobody knows the groups; such a name may neither read reports nor decide."""

    identity: Identity
    groups_unknown: str = ""


def names_on(rules: ClusterRules, claims: Mapping[str, Any]) -> NamedIdentity:
    """Whom verified `claims` mean by a cluster's rules. Raises ClaimsRefused."""
    for claim, value in rules.required:
        if claims.get(claim) != value:
            raise ClaimsRefused(f"the claim {claim} does not match what cluster {rules.cluster} requires")
    username = rules.username.prefix + _username(rules, claims)
    groups, unknown = _groups(rules, claims)
    for name in (username, *groups):
        if name.startswith(RESERVED):
            raise ClaimsRefused(f"{name} starts with {RESERVED}, which only the cluster itself can assert")
    return NamedIdentity(Identity(username, groups), unknown)


def _username(rules: ClusterRules, claims: Mapping[str, Any]) -> str:
    claim = rules.username.claim
    value = claims.get(claim)
    room = MAX_CHARACTERS - len(rules.username.prefix)
    if not isinstance(value, str) or not 1 <= len(value) <= room or not value.isprintable():
        raise ClaimsRefused(f"the claim {claim}, which names people on cluster {rules.cluster}, is not a usable string")
    if claim == "email" and claims.get("email_verified", True) is not True:
        raise ClaimsRefused("the issuer has not verified the email address")
    return value


def _groups(rules: ClusterRules, claims: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    if rules.groups is None:
        return (), ""
    claim = rules.groups.claim
    if _is_left_out(claim, claims):
        return (), OVERAGE
    if claim not in claims:
        return (), NO_GROUPS_CLAIM.format(claim=claim)
    value = claims[claim]
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) and one.isprintable() for one in found):
        raise ClaimsRefused(f"the claim {claim} is neither a string nor a list of printable strings")
    if len(found) > MAX_GROUPS or any(len(one) > MAX_CHARACTERS for one in found):
        return (), OVERAGE
    return tuple(sorted({rules.groups.prefix + one for one in found if one})), ""


def _is_left_out(claim: str, claims: Mapping[str, Any]) -> bool:
    """Whether the issuer names another place for the groups, as Microsoft Entra does where there are over 200."""
    elsewhere = claims.get("_claim_names")
    return (isinstance(elsewhere, dict) and claim in elsewhere) or claims.get("hasgroups") in (True, "true")
