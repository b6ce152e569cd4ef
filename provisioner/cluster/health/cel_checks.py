"""Health checks in CEL are asked of the evaluator: each object on its own, within limits on size and time."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from provisioner import health_checks
from provisioner.expressions.evaluator import ask
from provisioner.health_checks import LANGUAGE, MAX_OBJECT_BYTES, HealthCheck
from provisioner.values import Health, HealthState, JsonObject

TIMEOUT_SECONDS = 10.0


def check_spec(spec: Mapping[str, Any]) -> None:
    """Raises BadHealthCheck where the health part of a BundleDeployment's spec cannot be read, or does not compile."""
    checks = health_checks.check_spec(spec)
    texts = sorted({text for check in checks for text in check.expressions})
    health_checks.check_compiled(checks, dict(zip(texts, ask(LANGUAGE, texts), strict=True)))


def evaluated(
    questions: Sequence[tuple[HealthCheck, JsonObject]], *, timeout_seconds: float = TIMEOUT_SECONDS
) -> list[Health]:
    """The answer to each (check, live object), in their order; what has no answer is Unknown, in words."""
    deadline = time.monotonic() + timeout_seconds
    return [_evaluated(check, _without_managed_fields(obj), deadline, timeout_seconds) for check, obj in questions]


def _evaluated(check: HealthCheck, obj: JsonObject, deadline: float, timeout_seconds: float) -> Health:
    size = len(json.dumps(obj))
    if size > MAX_OBJECT_BYTES:
        words = f"the object has {size} bytes; CEL checks are for at most {MAX_OBJECT_BYTES}"
        return Health(HealthState.UNKNOWN, f"not evaluated: {words}")
    left = deadline - time.monotonic()
    if left <= 0:
        return Health(HealthState.UNKNOWN, f"not evaluated: the CEL checks took longer than {timeout_seconds:g} s")
    return check.judge(obj, ask(LANGUAGE, check.expressions, health_checks.facts_of(obj), seconds=left))


def _without_managed_fields(obj: JsonObject) -> dict[str, Any]:
    """Who wrote which field is no state, and often half of an object."""
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return {**obj, "metadata": meta}
