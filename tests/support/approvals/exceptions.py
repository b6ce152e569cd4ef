"""Finding exceptions of the small world, written and confirmed as people do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from approvals import services
from approvals.clock import database_now
from approvals.deciding.finding_exceptions import FindingException
from approvals.models import DecidingObject
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

REASON = "replaced in spring"


def spec_of(**changes: Any) -> dict[str, Any]:
    """It accepts the finding `f1` of RB-01 for thirty days."""
    until = database_now() + timedelta(days=30)
    return {
        "reason": REASON,
        "ticket": "SEC-1",
        "rule": "RB-01",
        "fingerprint": "f1",
        "expires": until.isoformat(),
        **changes,
    }


def second_person(env: World) -> User:
    """Carla, who may confirm."""
    env.kubernetes.allow("carla", "approve")
    env.kubernetes.allow("carla", "get")
    return world.user("carla", env.cluster, "security")


def write(env: World, by: User | None = None, **changes: Any) -> DecidingObject:
    """An exception `web`, as written here."""
    return services.create_object(
        by=acting(by or env.ada),
        cluster=env.cluster,
        kind=FindingException,
        name="web",
        spec=spec_of(**changes),
        via="browser",
    )


def confirm(env: World, row: DecidingObject, by: User) -> DecidingObject:
    return services.confirm_object(
        by=acting(by),
        cluster=env.cluster,
        kind=FindingException,
        name=row.name,
        version=row.version,
        via="browser",
    )
