"""Every setting that an operator may give, in one table; docs/reference/settings.md is written from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from approvals.buckets.location import authorities_file, bucket_name, endpoint_url, key_prefix, region_name
from approvals.controllers import parse_controllers
from approvals.encryption.keys import parse_keys
from approvals.networks import Proxies
from approvals.oidc.issuers import parse_issuers
from approvals.policy.built_in import BUILT_IN
from approvals.proxies import parse_identity_proxies

MIN_TOKEN_CHARACTERS = 32
DEPLOYMENT = re.compile(r"[a-zA-Z0-9_-]{1,63}/(?:catalogs/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
# All of provisioner.values.Severity but "unknown", which is worse than every limit, mildest first.
LIMITS = ("safe", "notable", "dangerous", "breaking", "critical")


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def built_in_guards(text: str) -> list[str]:
    found, known = words(text), [guard.name for guard in BUILT_IN]
    for name in found:
        if name not in known:
            raise ValueError(f"{name!r} was given: expected names of {', '.join(known)}")
    return found


def hosts(text: str) -> list[str]:
    found = words(text)
    if "*" in found:
        raise ValueError("'*' would be every host: name each, as host, host:port or *.suffix")
    return found


def networks(text: str) -> list[str]:
    found = words(text)
    for network in found:
        try:
            ip_network(network)
        except ValueError as exc:
            raise ValueError(f"{network!r} was given: expected a network, such as 10.0.0.0/8") from exc
    return found


def sender(text: str) -> str:
    """An address of e-mail, alone or behind a name in angle brackets; "" for none."""
    if text and not re.fullmatch(r"[^@<>\r\n]* <[^@\s<>]+@[^@\s<>]+>|[^@\s<>]+@[^@\s<>]+", text):
        raise ValueError(f"{text!r} was given: expected an address, such as Pratique <pratique@example.com>")
    return text


def site(text: str) -> str:
    """The address of a site, under which paths are put."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} was given: expected https://HOST")
    return text


def ticket_site(text: str) -> str:
    """The address of a ticket, in which {ticket} stands for its name; "" for none."""
    if text and ("{ticket}" not in text or "{" in urlsplit(site(text)).netloc):
        raise ValueError(f"{text!r} was given: expected an address such as https://tickets.example.com/{{ticket}}")
    return text


def switch(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    raise ValueError(f"{text!r} is not a boolean: expected true or false")


def number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Reads a whole number between two bounds, which are allowed themselves."""

    def read(text: str) -> int:
        found = int(text) if re.fullmatch(r"\s*[0-9]{1,18}\s*", text, re.ASCII) else least - 1
        if found < least or (most is not None and found > most):
            expected = f"{least} or more" if most is None else f"{least} to {most}"
            raise ValueError(f"{text!r} was given: expected a whole number, {expected}")
        return found

    return read


def choice(*allowed: str) -> Callable[[str], str]:
    """Reads one of a few words."""

    def read(text: str) -> str:
        if text not in allowed:
            *most, last = filter(None, allowed)
            raise ValueError(f"{text!r} was given: expected {', '.join(most)} or {last}")
        return text

    return read


def deployments(text: str) -> list[str]:
    """Each a cluster and a deployment or catalog of it, exactly: a pattern would let whoever names one choose."""
    found = words(text)
    for one in found:
        if not DEPLOYMENT.fullmatch(one):
            raise ValueError(f"{one!r} is not a deployment: expected CLUSTER/NAME or CLUSTER/catalogs/NAME")
    return found


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


PREFIX = "PRATIQUE_"


@dataclass(frozen=True, slots=True)
class Setting:
    """`name` is the environment variable without its prefix; `parse` turns its text into the value."""

    name: str
    default: str
    meaning: str
    parse: Callable[[str], Any] = str


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
        "PUBLIC_URL",
        "http://127.0.0.1:8000",
        "URL under which people reach the site; used for links in chat messages",
        site,
    ),
    Setting(
        "TICKET_URL",
        "",
        "address of a change ticket, such as https://tickets.example.com/{ticket}, so that pages link to it; empty: no "
        "link",
        ticket_site,
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
    Setting("STATIC_DIR", "staticfiles", "folder that `collectstatic` fills; pages are styled without it, too"),
    Setting("APPROVALS_NEEDED", "1", "number of people who must approve a request", number(1)),
    Setting("SELF_APPROVAL", "false", "whether requesters may approve their own requests", switch),
    Setting(
        "BUILT_IN_GUARDS",
        ",".join(guard.name for guard in BUILT_IN),
        "built-in guards that hold requests of every cluster, unless someone switches one off for a cluster on the "
        "page Policies; empty: none",
        built_in_guards,
    ),
    Setting(
        "REMIND_HOURS",
        "24",
        "after how many hours without a verdict the chat is reminded of a request, once in each round; 0: never",
        number(0, 8760),
    ),
    Setting("REVIEW_OWED_HOURS", "24", "within how many hours a break-glass must be reviewed", number(1, 8760)),
    Setting(
        "BREAK_GLASS_GROUPS",
        "",
        "groups of which one is needed to break glass, beside the verb: cluster-admin has every verb by its wildcard; "
        "empty: the verb is enough",
        words,
    ),
    Setting("BREAK_GLASS_ALONE", "false", "whether requesters may break glass for their own requests", switch),
    Setting(
        "DOUBT_WRITERS",
        "true",
        "whether one approver who could have written the deployment, under their own name or another one, is "
        "treated as the requester and does not count",
        switch,
    ),
    Setting("UNREVIEWED_DELETIONS", "false", "whether a deployment without data is deleted without a review", switch),
    Setting(
        "UNSEEN_SEVERITY",
        "notable",
        "the worst severity that can be approved through channels that do not show the report: chat, webhooks and "
        "kubectl",
        choice(*LIMITS),
    ),
    Setting(
        "UNSEEN_DEPENDING_SEVERITY",
        "",
        "the same for findings that only hold if a stored object is as they say, while nobody looked at the objects; "
        "empty: PRATIQUE_UNSEEN_SEVERITY",
        choice("", *LIMITS),
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
    Setting("REQUEST_HOURS", "72", "hours until an unsettled request expires", number(1)),
    Setting(
        "GROUPS_HOURS",
        "12",
        "hours for which a verified identity and its groups are valid in sessions, API tokens and chat links",
        number(1),
    ),
    Setting("SESSION_HOURS", "12", "maximum duration of a browser session, in hours", number(1)),
    Setting("SESSION_IDLE_MINUTES", "120", "minutes of inactivity after which a browser session ends", number(1)),
    Setting(
        "KEEP_DAYS",
        "0",
        "days after which a settled request loses its report and stored content; who decided, and the audit, stay. "
        "0 keeps everything",
        number(0, 36_500),
    ),
    Setting("TOKEN_DAYS", "90", "maximum lifetime of an API token, in days", number(0)),
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
    Setting("CLAIM_SECONDS", "10", "seconds until the claim of a dead worker lapses", number(1)),
    Setting("STEP_MINUTES", "15", "minutes without progress after which a step counts as dead", number(1)),
    Setting(
        "ALONE_MEMORY_MIB",
        "1024",
        "memory limit (MiB) of the process that retries a request after its first process died",
        number(1),
    ),
    Setting(
        "WORKER_MEMORY_MIB",
        "0",
        "memory limit (MiB) of one worker with all its processes; 0: the container's limit, or else the "
        "machine's memory",
        number(0),
    ),
    Setting(
        "PREPARATIONS_AT_ONCE",
        "12",
        "number of requests that one worker prepares in parallel, each in its own process; must be less "
        "than its number of threads",
        number(1),
    ),
    Setting("APPLY_MINUTES", "15", "minutes that an apply may take if the spec sets no deadline", number(1)),
    Setting(
        "APPLIES_AT_ONCE",
        "6",
        "number of requests that one worker process applies in parallel; must be less than its number of threads",
        number(1),
    ),
    Setting(
        "PROGRESS_DEADLINE_MINUTES",
        "30",
        "minutes within which a revision must become healthy if the spec sets no deadline",
        number(1),
    ),
    Setting("CLUSTER_TIMEOUT_SECONDS", "10", "timeout of one call to a cluster, in seconds", number(1)),
    Setting("MAX_BUNDLE_MIB", "256", "maximum size of an unpacked bundle (MiB)", number(1)),
    Setting("MAX_CATALOG_MIB", "1024", "maximum size of an unpacked catalog (MiB)", number(1)),
    Setting("MAX_OBJECTS", "5000", "maximum number of objects in a bundle", number(1)),
    Setting("MAX_OPEN_REQUESTS", "200", "maximum number of open requests per cluster", number(0)),
    Setting("MAX_OPEN_REQUESTS_OF_ONE", "50", "maximum number of open requests per requester and cluster", number(0)),
    Setting(
        "MAX_OPEN_REQUESTS_OF_CONTROLLER",
        "500",
        "maximum number of open requests per cluster and account that `PRATIQUE_GITOPS_FILE` lists",
        number(0),
    ),
    Setting("ALLOWED_NETWORKS", "", "non-public networks that sources may be fetched from (CIDR)", networks),
    Setting("ALLOWED_SOURCE_HOSTS", "", "hosts that sources may redirect to or get tokens from", words),
    Setting(
        "NAMESPACE", "pratique", "the namespace that Pratique runs in; only people can approve content that affects it"
    ),
    Setting("ALLOWED_IMAGES", "", "registries and repository prefixes that images may come from; empty: any", words),
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
        number(0),
    ),
    Setting(
        "SOURCE_POLL_MIN_SECONDS",
        "60",
        "shortest interval, in seconds; a spec that asks for less gets this one",
        number(1),
    ),
    Setting(
        "SOURCE_POLLS_PER_HOST",
        "30",
        "maximum number of checks for changes per source host and minute; 0: nothing is checked",
        number(0),
    ),
    Setting(
        "SOURCE_REQUESTS_PER_HOUR",
        "4",
        "maximum number of requests per deployment and hour that are created because its sources change or its "
        "catalogs offer something else; 0: no maximum",
        number(0),
    ),
    Setting(
        "COMPARISONS",
        "2",
        "maximum number of comparisons of bundles per person that are prepared at the same time",
        number(1),
    ),
    Setting(
        "COMPARISONS_PER_HOUR",
        "30",
        "maximum number of comparisons of bundles per person and hour; one that is known already is not counted",
        number(1),
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
        "OIDC_FILE", "", "YAML file of OpenID Connect issuers and the clusters that each is trusted on", parse_issuers
    ),
    Setting(
        "IDENTITY_PROXIES_FILE",
        "",
        "YAML file of authenticating proxies and the clusters that each is trusted on",
        parse_identity_proxies,
    ),
    Setting(
        "RENEW_MINUTES",
        "10",
        "minutes after which the issuer is asked again for a person's identity and groups",
        number(0),
    ),
    Setting("SLACK_SIGNING_SECRET", "", "signing secret of the Slack app whose buttons decide requests"),
    Setting("SLACK_TEAM", "", "ID of the Slack team whose members may decide"),
    Setting("SLACK_WEBHOOK_URL", "", "incoming webhook for messages about requests that need a review or were decided"),
    Setting("EMAIL_HOST", "", "SMTP server that notifications are sent through by e-mail; empty: there is no e-mail"),
    Setting("EMAIL_PORT", "587", "port of the SMTP server", number(1, 65535)),
    Setting("EMAIL_HOST_USER", "", "user name at the SMTP server; empty: without signing in"),
    Setting("EMAIL_HOST_PASSWORD", "", "password at the SMTP server"),
    Setting(
        "EMAIL_SECURITY",
        "starttls",
        "how mail is encrypted: `starttls`, `tls` (from the start, port 465), or `none` (a relay on the same machine)",
        choice("starttls", "tls", "none"),
    ),
    Setting(
        "EMAIL_FROM",
        "",
        "sender of mails, such as `Pratique <pratique@example.com>`; empty: pratique@ and the host of `PUBLIC_URL`",
        sender,
    ),
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
    Setting("LOG_FORMAT", "json", "log format: `json` or `console`", choice("json", "console")),
    Setting("SENTRY_DSN", "", "Sentry DSN for error reports (extra: sentry)"),
    Setting("OTLP_ENDPOINT", "", "OTLP/HTTP endpoint for traces, such as http://collector:4318 (extra: otel)"),
)
