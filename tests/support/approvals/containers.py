"""A Deployment before and after, with images, arguments, variables and a password."""

from __future__ import annotations

from typing import Any

from tests.support.provisioner.contents import an_object

OLD, NEW = "quay.io/shop/web:v1", "quay.io/shop/web:v2"


def deployment(image: str, *args: str, **env: str) -> dict[str, Any]:
    variables: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in env.items()]
    variables.append({"name": "KEY", "valueFrom": {"secretKeyRef": {"name": f"keys-{image[-2:]}", "key": "k"}}})
    pod = {"containers": [{"name": "main", "image": image, "args": list(args), "env": variables}]}
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": pod}})


BEFORE = deployment(OLD, "--level=live-arg", DB_PASSWORD="hunter2", MODE="live-mode")
AFTER = deployment(NEW, "--level=debug", DB_PASSWORD="hunter3", MODE="fast")
