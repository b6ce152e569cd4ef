"""Every setting that an operator may give, in one table; docs/reference/settings.md is written from it."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from approvals.encryption.keys import parse_keys
from approvals.networks import Proxies
from approvals.oidc.issuers import parse_issuers
from approvals.proxies import parse_identity_proxies


@dataclass(frozen=True, slots=True)
class Setting:
    """`name` is the environment variable without its prefix; `parse` turns its text into the value."""

    name: str
    default: str
    meaning: str
    parse: Callable[[str], Any] = str


PREFIX = "PRATIQUE_"
# Settings whose whole value is a secret; of every other one that is an address, its password is.
SECRET = re.compile(r"SECRET|TOKEN|PASSWORD|KEY|DSN|WEBHOOK_URL")
MIN_TOKEN_CHARACTERS = 32
DEPLOYMENT = re.compile(r"[a-zA-Z0-9_-]{1,63}/[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def switch(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def deployments(text: str) -> list[str]:
    """Each a cluster and a BundleDeployment of it, exactly: no pattern, which would let whoever names one choose."""
    found = words(text)
    for one in found:
        if not DEPLOYMENT.fullmatch(one):
            raise ValueError(f"{one!r} is no deployment: expected CLUSTER/NAME")
    return found


def severity(text: str) -> str:
    """One of provisioner.values.Severity but "unknown", which is worse than every limit."""
    if text not in LIMITS:
        raise ValueError(f"{text!r} is none of {', '.join(LIMITS)}")
    return text


LIMITS = ("safe", "notable", "dangerous", "breaking", "critical")


def long_token(text: str) -> str:
    """A bearer token that nobody guesses, or "". The error does not quote it."""
    if text and (len(text) < MIN_TOKEN_CHARACTERS or not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", text)):
        raise ValueError(f"expected at least {MIN_TOKEN_CHARACTERS} of the characters A-Z a-z 0-9 . _ ~ + / = -")
    return text


def address(text: str) -> tuple[str, int] | None:
    """(host, port) of "host:port" or "[host]:port"; None of ""."""
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is no address: expected host:port, such as 0.0.0.0:9090")
    return host.removeprefix("[").removesuffix("]"), int(port)


SETTINGS = (
    Setting("SECRET_KEY", "", "signs sessions and one-time codes; required unless DEBUG"),
    Setting(
        "ENCRYPTION_KEYS",
        "",
        "encrypt stored credentials, bundles and reports: the first encrypts, all decrypt"
        " (`pratique-manage new_encryption_key`); required unless DEBUG",
        parse_keys,
    ),
    Setting("DEBUG", "false", "development only: error pages with code", switch),
    Setting("ALLOWED_HOSTS", "127.0.0.1,localhost", "host names that the site answers to", words),
    Setting("PUBLIC_URL", "http://127.0.0.1:8000", "where people reach the site; used in chat messages"),
    Setting("HTTPS", "false", "cookies only over TLS, HSTS", switch),
    Setting("TRUSTED_ORIGINS", "", "origins that forms may come from, behind a proxy", words),
    Setting(
        "TRUSTED_PROXIES",
        "",
        "networks of reverse proxies whose X-Forwarded-For and -Proto are believed (CIDR), `unix` for a Unix socket",
        Proxies.read,
    ),
    Setting(
        "PROBE_ADDRESS",
        "127.0.0.1:8001",
        "where probes are answered apart from the pages: host:port; empty: nowhere",
        address,
    ),
    Setting("DATABASE_URL", "sqlite:///pratique.sqlite3", "PostgreSQL in production"),
    Setting("REDIS_URL", "redis://127.0.0.1:6379/0", "the queue and the counters of limits: Redis or Valkey"),
    Setting("CONTENT_DIR", "content", "folder of the content store"),
    Setting(
        "STATIC_DIR",
        "staticfiles",
        "folder that `collectstatic` fills; pages have their style without it, too",
    ),
    Setting("APPROVALS_NEEDED", "1", "how many people must approve a request", int),
    Setting("SELF_APPROVAL", "false", "whether a requester may approve their own request", switch),
    Setting(
        "DOUBT_WRITERS",
        "true",
        "where nobody knows who asked: one approver who may write the deployment is taken for the one who did",
        switch,
    ),
    Setting(
        "UNREVIEWED_DELETIONS", "false", "whether a deployment that holds no data is deleted without a review", switch
    ),
    Setting(
        "UNSEEN_SEVERITY",
        "notable",
        "the worst severity that may be approved where the report is not shown: chat, webhook",
        severity,
    ),
    Setting(
        "UNATTENDED_READS",
        "",
        "deployments (CLUSTER/NAME) whose sources' Secrets and ConfigMaps are read although nobody asked just now and"
        " what is known of who wrote the spec is older than PRATIQUE_GROUPS_HOURS",
        deployments,
    ),
    Setting("MACHINE_REVIEWERS", "", "system: user names that may review", words),
    Setting("REQUEST_HOURS", "72", "hours until a request that nobody settled expires", int),
    Setting(
        "GROUPS_HOURS",
        "12",
        "hours that a proved identity and its groups are believed, by every session, API token and chat link",
        int,
    ),
    Setting("SESSION_HOURS", "12", "hours after which a browser's session ends, whatever it does", int),
    Setting("SESSION_IDLE_MINUTES", "120", "minutes after which a session ends in which nothing was asked for", int),
    Setting("TOKEN_DAYS", "90", "most days that an API token may be made for", int),
    Setting(
        "LOCAL_ACCOUNTS",
        "false",
        "whether people sign in with a password of an account here, as whom `pratique-manage map_identity` says",
        switch,
    ),
    Setting(
        "ISSUERS_ELSEWHERE",
        "false",
        "whether this process has no files of issuers and proxies because another has them, as a worker: "
        "proofs count by age",
        switch,
    ),
    Setting("CLAIM_SECONDS", "10", "seconds after which a dead worker's claim lapses", int),
    Setting(
        "STEP_MINUTES",
        "15",
        "minutes that a worker may be at one step without progress before it counts as dead",
        int,
    ),
    Setting(
        "ALONE_MEMORY_MIB",
        "1024",
        "memory (MiB) of the process in which a request is tried once more after its first one died",
        int,
    ),
    Setting(
        "WORKER_MEMORY_MIB",
        "0",
        "memory (MiB) of one worker with all its processes; 0: the container's limit, else the machine's memory",
        int,
    ),
    Setting(
        "PREPARATIONS_AT_ONCE",
        "12",
        "requests that one worker prepares at a time, each in a process of its own: fewer than its threads",
        int,
    ),
    Setting(
        "APPLY_MINUTES",
        "15",
        "minutes that an apply may take, where its spec sets no deadline",
        int,
    ),
    Setting(
        "APPLIES_AT_ONCE", "6", "requests that one worker process writes for at a time: fewer than its threads", int
    ),
    Setting(
        "PROGRESS_DEADLINE_MINUTES", "30", "minutes until a revision shall be healthy, where its spec does not say", int
    ),
    Setting("CLUSTER_TIMEOUT_SECONDS", "10", "seconds that one call to a cluster may take", int),
    Setting("MAX_BUNDLE_MIB", "256", "largest unpacked bundle", int),
    Setting("MAX_OBJECTS", "5000", "most objects in one bundle", int),
    Setting("MAX_OPEN_REQUESTS", "200", "open requests that one cluster may have", int),
    Setting("MAX_OPEN_REQUESTS_OF_ONE", "50", "open requests on one cluster that one requester may have", int),
    Setting("ALLOWED_NETWORKS", "", "non-public networks that sources may be fetched from (CIDR)", words),
    Setting("ALLOWED_SOURCE_HOSTS", "", "hosts that sources may redirect to or take tokens from", words),
    Setting(
        "NAMESPACE",
        "pratique",
        "the namespace that Pratique runs in: what reaches into it is approved by people only",
    ),
    Setting(
        "ALLOWED_IMAGES",
        "",
        "registries and beginnings of repositories that images may come from; empty: anywhere",
        words,
    ),
    Setting("PLAIN_HTTP", "false", "whether sources may be fetched without TLS", switch),
    Setting("MUTABLE_HTTP", "false", "whether an http source may lack a checksum", switch),
    Setting(
        "TRUSTED_KUBECONFIGS",
        "",
        "clusters whose kubeconfig may name files, commands and proxies (TLS is checked all the same)",
        words,
    ),
    Setting(
        "KUBECONFIGS_DIR",
        "",
        "folder with kubeconfigs of this process alone, each named as its cluster, in place of the registered ones",
    ),
    Setting(
        "OIDC_FILE",
        "",
        "YAML file of the OpenID Connect issuers whose people sign in, and on which clusters each counts",
        parse_issuers,
    ),
    Setting(
        "IDENTITY_PROXIES_FILE",
        "",
        "YAML file of the proxies in front that say by headers who somebody is, and on which clusters each counts",
        parse_identity_proxies,
    ),
    Setting(
        "RENEW_MINUTES", "10", "minutes after which an issuer is asked anew who somebody is, and in which groups", int
    ),
    Setting("SLACK_SIGNING_SECRET", "", "of the Slack app whose buttons decide"),
    Setting("SLACK_TEAM", "", "the Slack team whose members count"),
    Setting("SLACK_WEBHOOK_URL", "", "incoming webhook for 'needs you' and 'decided'"),
    Setting("DECISION_WEBHOOK_SECRET", "", "of the generic decision endpoint (Standard Webhooks, whsec_…)"),
    Setting("DECISION_WEBHOOK_USER", "", "the user that the generic decision endpoint acts as"),
    Setting(
        "METRICS_TOKEN",
        "",
        "bearer token that /metrics asks for, at least 32 characters; empty: the site has no /metrics",
        long_token,
    ),
    Setting(
        "METRICS_OPEN",
        "false",
        "whether an address for /metrics that others can reach may be served without a token",
        switch,
    ),
    Setting("METRICS_ADDRESS", "", "host:port where each process serves its own /metrics; empty: nowhere", address),
    Setting("LOG_FORMAT", "json", "json or console"),
    Setting("SENTRY_DSN", "", "errors go there (extra: sentry)"),
    Setting("OTLP_ENDPOINT", "", "traces go there by OTLP over HTTP, e.g. http://collector:4318 (extra: otel)"),
)


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
    check_names_apart(values)
    check_people_join(values)
    return values


def check_names_apart(values: Mapping[str, Any]) -> None:
    """Raises ValueError where a proxy could name another one's people on a cluster, or an issuer's, or they its own."""
    proxied = [(proxy.name, names) for proxy in values["IDENTITY_PROXIES_FILE"] for names in proxy.clusters]
    others = [
        (issuer.name, rules.cluster, rules.username.prefix, rules.groups.prefix if rules.groups else None)
        for issuer in values["OIDC_FILE"]
        for rules in issuer.clusters
    ]
    for number, (who, names) in enumerate(proxied):
        here = (names.cluster, names.username_prefix, names.groups_prefix)
        for other, *there in others + [(it, *astuple(its)) for it, its in proxied[:number]]:
            if here[0] == there[0] and (_may_clash(here[1], there[1]) or _may_clash(here[2], there[2])):
                raise ValueError(
                    f"{PREFIX}IDENTITY_PROXIES_FILE: {who} and {other} count on cluster {names.cluster}, and the prefix"
                    " of one begins with that of the other: either could name the other's people. Give them prefixes"
                    " that differ from the first letter that they do not share, such as a: and b:"
                )


def check_people_join(values: Mapping[str, Any]) -> None:
    """Raises ValueError where one human would be two people of a cluster: who asks by one way, and approves by another.

    Issuers tell people by `sub`. A proxy that is not the only way into a cluster has to tell them by the `sub` of an
    issuer, too (security.md S05, S12).
    """
    issuers, proxies = values["OIDC_FILE"], values["IDENTITY_PROXIES_FILE"]
    for proxy in proxies:
        for names in proxy.clusters:
            there = issuers.of_cluster(names.cluster)
            others = [*there, *(one for one in proxies if one is not proxy and one.names_on(names.cluster))]
            if others and not proxy.issuer:
                raise ValueError(
                    f"{PREFIX}IDENTITY_PROXIES_FILE: {proxy.name} and {others[0].name} count on cluster"
                    f" {names.cluster}, and nobody can tell which of their people are the same: who asks by one could"
                    f" approve by the other. Have {proxy.name} send the `sub` of its issuer in a header, name that as"
                    " headers.uid, and give the issuer's address as issuer; or let only one of them count there"
                )
            if there and issuers.with_url(proxy.issuer) is None:
                raise ValueError(
                    f"{PREFIX}IDENTITY_PROXIES_FILE: {proxy.name} has the people of {proxy.issuer}, which is no url in"
                    f" {PREFIX}OIDC_FILE, and {there[0].name} counts on cluster {names.cluster}: give it to the letter"
                )


def _may_clash(one: str | None, other: str | None) -> bool:
    """None: it names nobody."""
    return one is not None and other is not None and (one.startswith(other) or other.startswith(one))


def check_metrics(values: Mapping[str, Any]) -> None:
    """Raises ValueError where whoever reaches this machine could read the metrics, and nobody said that they may."""
    where = values["METRICS_ADDRESS"]
    if where is None or values["METRICS_TOKEN"] or values["METRICS_OPEN"] or is_loopback(where[0]):
        return
    raise ValueError(
        f"{PREFIX}METRICS_ADDRESS: {where[0]} can be reached from elsewhere: set {PREFIX}METRICS_TOKEN, or"
        f" {PREFIX}METRICS_OPEN=true if a network policy guards it"
    )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
