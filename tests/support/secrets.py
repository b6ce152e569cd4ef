"""Values that stand nowhere in plain text, and where they are kept."""

from __future__ import annotations

import base64
import os
from typing import Any

from approvals import store
from approvals.encryption.keys import Key, key_of
from approvals.models import Content as StoredContent
from approvals.models import Request
from provisioner.render import content_digest
from provisioner.values import Content, Manifest
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

OLD, NEW = (key_of(os.urandom(32)) for _ in range(2))
TOKEN = "c4nary-of-a-kubeconfig"
KUBECONFIG = f"""
current-context: a
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
clusters: [{{name: a, cluster: {{server: "https://cluster.example:6443"}}}}]
users: [{{name: a, user: {{token: {TOKEN}}}}}]
"""


def reported(env: World) -> Request:
    wish = world.submit_spec(env.cluster, world.seen("quay", world.spec()), by=env.rita)
    return world.in_review(wish.requests.get())


def with_keys(settings: Any, *keys: Key) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "ENCRYPTION_KEYS": keys}


def secret(value: str) -> Content:
    data = base64.b64encode(value.encode()).decode()
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": data}}
    manifests = (Manifest(body),)
    digest = content_digest(manifests, install_namespace="harbour", service_account="installer")
    return Content(manifests, "harbour", "installer", (), digest)


def keep(value: str) -> StoredContent:
    return store.put(secret(value), format_name="plain")


def raw(model: Any, column: str) -> list[bytes]:
    return [value.envelope for value in model.objects.order_by("pk").values_list(column, flat=True)]
