"""Who a caller is: tokens of our own, or the session with its CSRF token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals import services
from approvals.models import ApiToken, Review
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting, api_token, enter


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer prq_unknown", "Bearer a b", "Basic YWRhOmFkYQ==", "Token x", "bearer\tprq_x", "é"],
)
def test_a_header_that_proves_nothing_is_refused(env: World, call: Call, header: str) -> None:
    response = call(None, "get", "clusters", authorization=header)
    assert response.status_code == 401
    problem_of(response)


@pytest.mark.parametrize("spoil", ["expired", "revoked", "switched off"])
def test_a_token_ends(env: World, call: Call, spoil: str) -> None:
    token, text = api_token(env.ada)
    known = {"authorization": f"Bearer {text}"}
    assert call(None, "get", "clusters", **known).status_code == 200
    if spoil == "expired":
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif spoil == "revoked":
        services.revoke_api_token(by=acting(env.ada), token_id=token.pk)
    else:
        env.ada.is_active = False
        env.ada.save()
    assert call(None, "get", "clusters", **known).status_code == 401


def test_only_the_digest_of_a_token_is_kept(env: World) -> None:
    token, text = api_token(env.ada)
    assert text not in str(ApiToken.objects.values().get())
    assert token.digest == services.tokens.digest(text)


def test_a_session_needs_its_csrf_token_to_write(env: World, afternoon: dict[str, Any]) -> None:
    client = Client(enforce_csrf_checks=True)
    enter(client, env.ada)
    serious = afternoon["serious"]
    assert client.get(f"/api/v1/requests/{serious.uid}").status_code == 200
    body = {"decision": "Deny", "subject_digest": serious.subject_digest, "reason": "no"}
    response = client.post(f"/api/v1/requests/{serious.uid}/reviews", body, content_type="application/json")
    assert response.status_code == 403
    problem_of(response)
    assert not Review.objects.filter(request=serious).exists()
