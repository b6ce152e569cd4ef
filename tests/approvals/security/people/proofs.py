"""carla, who is known by tokens of the cluster: her proofs, old and new, and her API tokens."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals.models import ApiToken, KubernetesIdentity, Proof, SignIn
from provisioner.values import Identity

TOKEN_REVIEW = KubernetesIdentity.Authenticator.TOKEN_REVIEW
CARLA = Identity("carla", ("platform",), "c-1")


def session(carla: User) -> Client:
    client = Client(headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"})
    answer = client.post("/sign-in", {"with": "token", "cluster": "prod", "token": "carla"})
    assert answer.status_code == 302
    return client


def made_old(hours: float = 13) -> None:
    """As if everything had been proved so long ago; a mapping's groups stay the operator's word of now."""
    before = timezone.now() - timedelta(hours=hours)
    Proof.objects.update(proved_at=before)
    KubernetesIdentity.objects.filter(authenticator=TOKEN_REVIEW).update(groups_seen_at=before)
    SignIn.objects.exclude(password_at=None).update(password_at=before)
    ApiToken.objects.exclude(password_at=None).update(password_at=before)
    User.objects.update(last_login=before)


def rest(text: str, method: str, path: str, body: object = None) -> Any:
    data = json.dumps(body) if body is not None else ""
    headers = {"authorization": f"Bearer {text}"}
    return Client().generic(method, f"/api/v1/{path}", data, content_type="application/json", headers=headers)
