"""What a format that asks for it is told of the cluster that its objects are for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """`kube_version` is such as v1.36.3; `api_versions` are such as `v1`, `apps/v1` and `apps/v1/Deployment`.

    `is_upgrade` says that the deployment runs already.
    """

    kube_version: str
    api_versions: tuple[str, ...]
    is_upgrade: bool = False
