"""All settings, read from the environment: refused where they contradict each other, and which of them are secret."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from approvals.buckets.location import check_location
from approvals.operators_file import check_prefixes_apart
from approvals.project.settings_table import PREFIX, SETTINGS, words

# Settings whose whole value is a secret; of every other one that is an address, its password is.
SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|KEY|DSN|WEBHOOK_URL")


def secrets_of(values: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Iterator[str]:
    """What no log line may hold: secrets, keys and tokens, as given and as read, and the passwords of addresses."""
    source = os.environ if environ is None else environ
    for setting in SETTINGS:
        if SECRET.search(setting.name):
            yield from words(source.get(PREFIX + setting.name, ""))
    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                continue
            if SECRET.search(name):
                yield text
            elif "://" in text and (password := urlsplit(text).password):
                yield from (password, unquote(password))


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


def read(environ: dict[str, str] | None = None) -> dict[str, Any]:
    """All settings by name; raises ValueError naming the variable that cannot be read."""
    source = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        text = source.get(PREFIX + setting.name, setting.default)
        try:
            values[setting.name] = setting.parse(text)
        except ValueError as exc:
            raise ValueError(f"{PREFIX}{setting.name}: {exc}") from exc
    check_metrics(values)
    check_location(values)
    check_names_apart(values)
    check_people_join(values)
    return values
