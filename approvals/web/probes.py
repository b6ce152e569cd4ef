"""`/healthz`: the process lives. `/readyz`: it can work, or in words why not."""

from __future__ import annotations

from collections.abc import Callable

import redis
from django.conf import settings
from django.core.files.storage import storages
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

PATIENCE_SECONDS = 2


class NotReady(Exception):
    """The message says what is missing, for the operator."""


def healthz(http: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


def readyz(http: HttpRequest) -> JsonResponse:
    """Every check by name; 503 if one of them failed. Messages name what is missing, never an address or a password."""
    answers = {name: _answer(check) for name, check in CHECKS.items()}
    is_ready = all(answer == "ok" for answer in answers.values())
    return JsonResponse(
        {"status": "ok" if is_ready else "not ready", "checks": answers}, status=200 if is_ready else 503
    )


def _answer(check: Callable[[], None]) -> str:
    try:
        check()
    except NotReady as exc:
        return str(exc)
    return "ok"


def check_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as exc:
        raise NotReady("the database does not answer: see PRATIQUE_DATABASE_URL") from exc


def check_migrations() -> None:
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as exc:
        raise NotReady("the database does not say which migrations it has") from exc
    if missing:
        raise NotReady(f"{len(missing)} migrations are missing: run manage.py migrate")


def check_queue() -> None:
    url = settings.PRATIQUE["REDIS_URL"]
    try:
        with redis.Redis.from_url(
            url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
        ) as client:
            client.ping()
    except (redis.RedisError, OSError) as exc:
        raise NotReady("Redis does not answer: see PRATIQUE_REDIS_URL") from exc


def check_content() -> None:
    try:
        storages["content"].exists("sha256")
    except OSError as exc:
        raise NotReady("the content store cannot be read: see PRATIQUE_CONTENT_DIR") from exc


CHECKS: dict[str, Callable[[], None]] = {
    "database": check_database,
    "migrations": check_migrations,
    "redis": check_queue,
    "content": check_content,
}
