"""What a person has looked at is theirs, and is for one round of one request."""

from __future__ import annotations

import pytest

from approvals import services
from approvals.errors import DigestMoved
from approvals.models import Request, ViewedObject
from approvals.selectors.pages import viewed_by
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

NAME = "/ConfigMap/shop/settings"


def tick(env: World, request: Request, *, is_viewed: bool = True, digest: str | None = None) -> None:
    services.mark_viewed(
        by=acting(env.ada),
        request_id=request.pk,
        subject_digest=request.subject_digest if digest is None else digest,
        name=NAME,
        is_viewed=is_viewed,
    )


def test_a_tick_is_kept_once_and_taken_away(env: World, request_: Request) -> None:
    for _ in range(2):
        tick(env, request_)
    assert ViewedObject.objects.count() == 1
    digest = request_.subject_digest
    assert viewed_by(user=env.ada, request=request_, subject_digest=digest) == {NAME}
    assert viewed_by(user=env.bert, request=request_, subject_digest=digest) == frozenset()
    assert viewed_by(user=env.ada, request=request_, subject_digest=f"{digest}x") == frozenset()
    tick(env, request_, is_viewed=False)
    assert not ViewedObject.objects.exists()


@pytest.mark.parametrize("digest", ["", "sha256:another"])
def test_of_another_round_nothing_is_ticked(digest: str, env: World, request_: Request) -> None:
    with pytest.raises(DigestMoved):
        tick(env, request_, digest=digest)
    assert not ViewedObject.objects.exists()
