"""Every setting that an operator may give, in one table; docs/reference/settings.md is written from it."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from approvals.buckets.location import (
    authorities_file,
    bucket_name,
    check_location,
    endpoint_url,
    key_prefix,
    region_name,
)
from approvals.controllers import parse_controllers
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
DEPLOYMENT = re.compile(r"[a-zA-Z0-9_-]{1,63}/(?:catalogs/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


# A hundred years.
MAX_DAYS = 36_500


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def hosts(text: str) -> list[str]:
    found = words(text)
    if "*" in found:
        raise ValueError("'*' would be every host: name each, as host, host:port or *.suffix")
    return found


def switch(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    raise ValueError(f"{text!r} is not a boolean: expected true or false")


def days(text: str) -> int:
    if not (text.strip().isdecimal() and int(text) <= MAX_DAYS):
        raise ValueError(f"{text!r} is not a number of days: expected 0 to {MAX_DAYS}")
    return int(text)


def positive(text: str) -> int:
    if not (text.strip().isdecimal() and int(text) > 0):
        raise ValueError(f"{text!r} is not a positive number: expected 1 or more")
    return int(text)


def deployments(text: str) -> list[str]:
    """Each a cluster and a deployment or catalog of it, exactly: a pattern would let whoever names one choose."""
    found = words(text)
    for one in found:
        if not DEPLOYMENT.fullmatch(one):
            raise ValueError(f"{one!r} is not a deployment: expected CLUSTER/NAME or CLUSTER/catalogs/NAME")
    return found


def severity(text: str) -> str:
    """One of provisioner.values.Severity but "unknown", which is worse than every limit."""
    if text not in LIMITS:
        raise ValueError(f"{text!r} is not a severity: expected one of {', '.join(LIMITS)}")
    return text


def severity_or_none(text: str) -> str:
    """The same, or "" for none."""
    return severity(text) if text else ""


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
        raise ValueError(f"{text!r} is not an address: expected host:port, such as 0.0.0.0:9090")
    return host.removeprefix("[").removesuffix("]"), int(port)


SETTINGS = (
    Setting("SECRET_KEY", "", "signs sessions and one-time codes; required unless DEBUG is true"),
    Setting(
        "ENCRYPTION_KEYS",
        "",
        "keys for stored credentials, bundles and reports: the first one encrypts, all of them decrypt "
        "(create one with `pratique-manage new_encryption_key`); required unless DEBUG is true",
        parse_keys,
    ),
    Setting("DEBUG", "false", "development only: show error pages with source code", switch),
    Setting("ALLOWED_HOSTS", "127.0.0.1,localhost", "host names that the site serves", words),
    Setting(
        "PUBLIC_URL", "http://127.0.0.1:8000", "URL under which people reach the site; used for links in chat messages"
    ),
    Setting("HTTPS", "false", "send cookies over TLS only, and HSTS", switch),
    Setting("TRUSTED_ORIGINS", "", "origins that forms may be submitted from when the site is behind a proxy", words),
    Setting(
        "TRUSTED_PROXIES",
        "",
        "networks of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted "
        "(CIDR); `unix` for a Unix socket",
        Proxies.read,
    ),
    Setting(
        "PROBE_ADDRESS",
        "127.0.0.1:8001",
        "host:port of the health endpoints, separate from the pages; empty to disable",
        address,
    ),
    Setting("DATABASE_URL", "sqlite:///pratique.sqlite3", "database URL; use PostgreSQL in production"),
    Setting("REDIS_URL", "redis://127.0.0.1:6379/0", "Redis or Valkey, for the task queue and rate limits"),
    Setting("CONTENT_DIR", "content", "folder of the content store, where no bucket is named"),
    Setting(
        "CONTENT_S3_BUCKET",
        "",
        "bucket of the content store, so that processes on several machines share no disk; it has to exist"
        " (extra: s3). Credentials come from AWS's own places",
        bucket_name,
    ),
    Setting("CONTENT_S3_PREFIX", "", "beginning of all keys in the bucket, such as `pratique/`", key_prefix),
    Setting("CONTENT_S3_ENDPOINT", "", "URL of the S3 server; empty: AWS", endpoint_url),
    Setting("CONTENT_S3_REGION", "", "region of the bucket; empty: as AWS_REGION or its profile says", region_name),
    Setting(
        "CONTENT_S3_PATH_STYLE",
        "false",
        "whether the bucket is part of the path and not of the host name, as many servers of one's own need it",
        switch,
    ),
    Setting(
        "CONTENT_S3_CA_FILE",
        "",
        "PEM file of the authorities that vouch for the S3 server; empty: the usual ones",
        authorities_file,
    ),
    Setting(
        "STATIC_DIR",
        "staticfiles",
        "folder that `collectstatic` fills; pages are styled without it, too",
    ),
    Setting("APPROVALS_NEEDED", "1", "number of people who must approve a request", int),
    Setting("SELF_APPROVAL", "false", "whether requesters may approve their own requests", switch),
    Setting(
        "DOUBT_WRITERS",
        "true",
        "whether, if the requester is unknown, one approver who may write the deployment is treated as "
        "the requester and does not count",
        switch,
    ),
    Setting("UNREVIEWED_DELETIONS", "false", "whether a deployment without data is deleted without a review", switch),
    Setting(
        "UNSEEN_SEVERITY",
        "notable",
        "the worst severity that can be approved through channels that do not show the report: chat and webhook",
        severity,
    ),
    Setting(
        "UNSEEN_DEPENDING_SEVERITY",
        "",
        "the same for findings that only hold if a stored object is as they say, while nobody looked at the objects; "
        "empty: PRATIQUE_UNSEEN_SEVERITY",
        severity_or_none,
    ),
    Setting(
        "UNATTENDED_READS",
        "",
        "deployments (CLUSTER/NAME) and catalogs (CLUSTER/catalogs/NAME) whose source Secrets and ConfigMaps are read "
        "even if nobody triggered it and the identities of its requesters are older than PRATIQUE_GROUPS_HOURS",
        deployments,
    ),
    Setting(
        "GITOPS_FILE",
        "",
        "YAML file of GitOps controllers, and the deployments and installers for which each is a known requester",
        parse_controllers,
    ),
    Setting("MACHINE_REVIEWERS", "", "`system:` user names that may review", words),
    Setting("REQUEST_HOURS", "72", "hours until an unsettled request expires", int),
    Setting(
        "GROUPS_HOURS",
        "12",
        "hours for which a verified identity and its groups are valid in sessions, API tokens and chat links",
        int,
    ),
    Setting("SESSION_HOURS", "12", "maximum duration of a browser session, in hours", int),
    Setting("SESSION_IDLE_MINUTES", "120", "minutes of inactivity after which a browser session ends", int),
    Setting(
        "KEEP_DAYS",
        "0",
        "days after which a settled request loses its report and stored content; who decided, and the audit, stay. "
        "0 keeps everything",
        days,
    ),
    Setting("TOKEN_DAYS", "90", "maximum lifetime of an API token, in days", int),
    Setting(
        "LOCAL_ACCOUNTS",
        "false",
        "whether people can sign in with the password of a local account, mapped by `pratique-manage map_identity`",
        switch,
    ),
    Setting(
        "ISSUERS_ELSEWHERE",
        "false",
        "set to true for a process that does not have the issuer and proxy files, such as a worker: "
        "identities are then checked by age only",
        switch,
    ),
    Setting("CLAIM_SECONDS", "10", "seconds until the claim of a dead worker lapses", int),
    Setting(
        "STEP_MINUTES",
        "15",
        "minutes without progress after which a step counts as dead",
        int,
    ),
    Setting(
        "ALONE_MEMORY_MIB",
        "1024",
        "memory limit (MiB) of the process that retries a request after its first process died",
        int,
    ),
    Setting(
        "WORKER_MEMORY_MIB",
        "0",
        "memory limit (MiB) of one worker with all its processes; 0: the container's limit, or else the "
        "machine's memory",
        int,
    ),
    Setting(
        "PREPARATIONS_AT_ONCE",
        "12",
        "number of requests that one worker prepares in parallel, each in its own process; must be less "
        "than its number of threads",
        int,
    ),
    Setting(
        "APPLY_MINUTES",
        "15",
        "minutes that an apply may take if the spec sets no deadline",
        int,
    ),
    Setting(
        "APPLIES_AT_ONCE",
        "6",
        "number of requests that one worker process applies in parallel; must be less than its number of threads",
        int,
    ),
    Setting(
        "PROGRESS_DEADLINE_MINUTES",
        "30",
        "minutes within which a revision must become healthy if the spec sets no deadline",
        int,
    ),
    Setting("CLUSTER_TIMEOUT_SECONDS", "10", "timeout of one call to a cluster, in seconds", int),
    Setting("MAX_BUNDLE_MIB", "256", "maximum size of an unpacked bundle (MiB)", int),
    Setting("MAX_CATALOG_MIB", "1024", "maximum size of an unpacked catalog (MiB)", positive),
    Setting("MAX_OBJECTS", "5000", "maximum number of objects in a bundle", int),
    Setting("MAX_OPEN_REQUESTS", "200", "maximum number of open requests per cluster", int),
    Setting("MAX_OPEN_REQUESTS_OF_ONE", "50", "maximum number of open requests per requester and cluster", int),
    Setting("ALLOWED_NETWORKS", "", "non-public networks that sources may be fetched from (CIDR)", words),
    Setting("ALLOWED_SOURCE_HOSTS", "", "hosts that sources may redirect to or get tokens from", words),
    Setting(
        "NAMESPACE",
        "pratique",
        "the namespace that Pratique runs in; only people can approve content that affects it",
    ),
    Setting(
        "ALLOWED_IMAGES",
        "",
        "registries and repository prefixes that images may come from; empty: any",
        words,
    ),
    Setting(
        "PLAIN_HTTP_HOSTS",
        "",
        "hosts that sources are fetched from without TLS: `host`, `host:port` or `*.suffix`; of a registry, all images",
        hosts,
    ),
    Setting("MUTABLE_HTTP", "false", "whether an http source may omit its checksum", switch),
    Setting(
        "SOURCE_POLL_SECONDS",
        "600",
        "seconds after which a branch, tag, image tag or URL without a checksum is checked for changes, where "
        "spec.sources[].interval does not say; 0: only where it does",
        int,
    ),
    Setting(
        "SOURCE_POLL_MIN_SECONDS",
        "60",
        "shortest interval, in seconds; a spec that asks for less gets this one",
        positive,
    ),
    Setting(
        "SOURCE_POLLS_PER_HOST",
        "30",
        "maximum number of checks for changes per source host and minute; 0: nothing is checked",
        int,
    ),
    Setting(
        "SOURCE_REQUESTS_PER_HOUR",
        "4",
        "maximum number of requests per deployment and hour that are created because its sources change or its "
        "catalogs offer something else; 0: no maximum",
        int,
    ),
    Setting(
        "COMPARISONS",
        "2",
        "maximum number of comparisons of bundles per person that are prepared at the same time",
        positive,
    ),
    Setting(
        "COMPARISONS_PER_HOUR",
        "30",
        "maximum number of comparisons of bundles per person and hour; one that is known already is not counted",
        positive,
    ),
    Setting(
        "TRUSTED_KUBECONFIGS",
        "",
        "clusters whose kubeconfig may reference files, commands and proxies (TLS is always verified)",
        words,
    ),
    Setting(
        "KUBECONFIGS_DIR",
        "",
        "folder with one kubeconfig per cluster, named after the cluster, that this process uses instead"
        " of the registered ones",
    ),
    Setting(
        "OIDC_FILE",
        "",
        "YAML file of OpenID Connect issuers and the clusters that each is trusted on",
        parse_issuers,
    ),
    Setting(
        "IDENTITY_PROXIES_FILE",
        "",
        "YAML file of authenticating proxies and the clusters that each is trusted on",
        parse_identity_proxies,
    ),
    Setting(
        "RENEW_MINUTES", "10", "minutes after which the issuer is asked again for a person's identity and groups", int
    ),
    Setting("SLACK_SIGNING_SECRET", "", "signing secret of the Slack app whose buttons decide requests"),
    Setting("SLACK_TEAM", "", "ID of the Slack team whose members may decide"),
    Setting("SLACK_WEBHOOK_URL", "", "incoming webhook for messages about requests that need a review or were decided"),
    Setting("DECISION_WEBHOOK_SECRET", "", "secret of the generic decision endpoint (Standard Webhooks, whsec_…)"),
    Setting("DECISION_WEBHOOK_USER", "", "user that the generic decision endpoint acts as"),
    Setting(
        "METRICS_TOKEN",
        "",
        "bearer token required for /metrics, at least 32 characters; empty: the site does not serve /metrics",
        long_token,
    ),
    Setting(
        "METRICS_OPEN",
        "false",
        "whether /metrics may be served without a token on an address that others can reach",
        switch,
    ),
    Setting(
        "METRICS_ADDRESS", "", "host:port on which each process serves its own /metrics; empty to disable", address
    ),
    Setting("LOG_FORMAT", "json", "log format: `json` or `console`"),
    Setting("SENTRY_DSN", "", "Sentry DSN for error reports (extra: sentry)"),
    Setting("OTLP_ENDPOINT", "", "OTLP/HTTP endpoint for traces, such as http://collector:4318 (extra: otel)"),
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
    check_location(values)
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
                    f"{PREFIX}IDENTITY_PROXIES_FILE: {who} and {other} are both used on cluster "
                    f"{names.cluster}, and the prefix of one starts with the prefix of the other, so either "
                    "could name people of the other. Use prefixes of which none starts with another, such as "
                    "a: and b:"
                )


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


def _may_clash(one: str | None, other: str | None) -> bool:
    """None: it names nobody."""
    return one is not None and other is not None and (one.startswith(other) or other.startswith(one))


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
