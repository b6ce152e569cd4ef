"""What a format that asks for it is told of the cluster that its objects are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from provisioner.values import JsonObject, ObjectRef


@dataclass(frozen=True, slots=True)
class LookedUp:
    """An object that a chart may look up, as it is told of it; None where it does not exist.

    Of a Secret the answer has marks; `marks` has the values by their marks.
    """

    ref: ObjectRef
    answer: JsonObject | None
    marks: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Target:
    """`kube_version` is such as v1.36.3; `api_versions` are such as `v1`, `apps/v1` and `apps/v1/Deployment`.

    `is_upgrade` says that the deployment runs already; `lookups` are what a chart may look up, None where nobody was
    asked for any.
    """

    kube_version: str
    api_versions: tuple[str, ...]
    is_upgrade: bool = False
    lookups: tuple[LookedUp, ...] | None = None
