"""What settings say together: combinations that would let somebody in, or be two people, are refused."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from approvals.operators_file import check_prefixes_apart
from approvals.project.configuration.table import PREFIX


def check_names_apart(values: Mapping[str, Any]) -> None:
    """Raises ValueError where a proxy could name another one's people on a cluster, or an issuer's, or they its own."""
    try:
        check_prefixes_apart([*values["IDENTITY_PROXIES_FILE"].prefixes(), *values["OIDC_FILE"].prefixes()])
    except ValueError as exc:
        raise ValueError(f"{PREFIX}IDENTITY_PROXIES_FILE: {exc}") from exc


def check_people_join(values: Mapping[str, Any]) -> None:
    """Raises ValueError where one human would be two people of a cluster: who asks by one way, and approves by another.

    Issuers tell people by `sub`. A proxy that is not the only way into a cluster has to tell them by the `sub` of an
    issuer, too (security-rules.md S05, S12).
    """
    issuers, proxies = values["OIDC_FILE"], values["IDENTITY_PROXIES_FILE"]
    for proxy in proxies:
        for names in proxy.clusters:
            there = issuers.of_cluster(names.cluster)
            others = [*there, *(one for one in proxies if one is not proxy and one.names_on(names.cluster))]
            if others and not proxy.issuer:
                raise ValueError(
                    f"{PREFIX}IDENTITY_PROXIES_FILE: {proxy.name} and {others[0].name} are both used on cluster "
                    f"{names.cluster}, and their people cannot be matched: someone could request through one "
                    f"and approve through the other. Configure {proxy.name} to send the issuer's `sub` in a "
                    "header, set headers.uid to that header and issuer to the issuer's URL; or use only one of "
                    "them on that cluster"
                )
            if there and issuers.with_url(proxy.issuer) is None:
                raise ValueError(
                    f"{PREFIX}IDENTITY_PROXIES_FILE: the issuer {proxy.issuer} of {proxy.name} is not a url in "
                    f"{PREFIX}OIDC_FILE, and {there[0].name} is used on cluster {names.cluster}: write the same "
                    "URL in both files"
                )


def check_metrics(values: Mapping[str, Any]) -> None:
    """Raises ValueError where whoever reaches this machine could read the metrics, and nobody said that they may."""
    where = values["METRICS_ADDRESS"]
    if where is None or values["METRICS_TOKEN"] or values["METRICS_OPEN"] or is_loopback(where[0]):
        return
    raise ValueError(
        f"{PREFIX}METRICS_ADDRESS: {where[0]} can be reached from other machines: set {PREFIX}METRICS_TOKEN, or "
        f"{PREFIX}METRICS_OPEN=true if a network policy protects it"
    )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
