"""Every setting that an operator may give, in one table; the README's table is tested against it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """`name` is the environment variable without its prefix; `parse` turns its text into the value."""

    name: str
    default: str
    meaning: str
    parse: Callable[[str], Any] = str


PREFIX = "PRATIQUE_"


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def switch(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


SETTINGS = (
    Setting("SECRET_KEY", "", "signs sessions and one-time codes; required unless DEBUG"),
    Setting("DEBUG", "false", "development only: error pages with code", switch),
    Setting("ALLOWED_HOSTS", "127.0.0.1,localhost", "host names that the site answers to", words),
    Setting("PUBLIC_URL", "http://127.0.0.1:8000", "where people reach the site; used in chat messages"),
    Setting("HTTPS", "false", "cookies only over TLS, HSTS", switch),
    Setting("TRUSTED_ORIGINS", "", "origins that forms may come from, behind a proxy", words),
    Setting("DATABASE_URL", "sqlite:///pratique.sqlite3", "PostgreSQL in production"),
    Setting("REDIS_URL", "redis://127.0.0.1:6379/0", "the queue: Redis or Valkey"),
    Setting("CONTENT_DIR", "content", "folder of the content store"),
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
    Setting("MACHINE_REVIEWERS", "", "system: user names that may review", words),
    Setting("REQUEST_HOURS", "72", "hours until a request that nobody settled expires", int),
    Setting("GROUPS_HOURS", "12", "hours that a person's groups are believed without a new sign-in", int),
    Setting("CLAIM_SECONDS", "60", "seconds after which a dead worker's claim lapses", int),
    Setting(
        "APPLY_MINUTES",
        "15",
        "minutes that an apply may take, where its spec sets no deadline",
        int,
    ),
    Setting("APPLIES_AT_ONCE", "6", "requests that one worker process applies at a time: fewer than its threads", int),
    Setting(
        "PROGRESS_DEADLINE_MINUTES", "30", "minutes until a revision shall be healthy, where its spec does not say", int
    ),
    Setting("CLUSTER_TIMEOUT_SECONDS", "10", "seconds that one call to a cluster may take", int),
    Setting("MAX_BUNDLE_MIB", "256", "largest unpacked bundle", int),
    Setting("MAX_OBJECTS", "5000", "most objects in one bundle", int),
    Setting("MAX_OPEN_REQUESTS", "200", "open requests that one cluster may have", int),
    Setting("ALLOWED_NETWORKS", "", "non-public networks that sources may be fetched from (CIDR)", words),
    Setting("ALLOWED_SOURCE_HOSTS", "", "hosts that sources may redirect to or take tokens from", words),
    Setting(
        "ALLOWED_IMAGES",
        "",
        "registries and beginnings of repositories that images may come from; empty: anywhere",
        words,
    ),
    Setting("PLAIN_HTTP", "false", "whether sources may be fetched without TLS", switch),
    Setting("MUTABLE_HTTP", "false", "whether an http source may lack a checksum", switch),
    Setting("TRUSTED_KUBECONFIGS", "", "clusters whose kubeconfig may name files and commands", words),
    Setting("SLACK_SIGNING_SECRET", "", "of the Slack app whose buttons decide"),
    Setting("SLACK_TEAM", "", "the Slack team whose members count"),
    Setting("SLACK_WEBHOOK_URL", "", "incoming webhook for 'needs you' and 'decided'"),
    Setting("DECISION_WEBHOOK_SECRET", "", "of the generic decision endpoint (Standard Webhooks, whsec_…)"),
    Setting("DECISION_WEBHOOK_USER", "", "the user that the generic decision endpoint acts as"),
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
    return values
