"""CEL health checks are evaluated in a process of their own: a hostile one ends with its time and memory, not ours.

The library itself ends an expression after 10,000 iterations; what a single iteration may cost it does not bound.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from provisioner.errors import BadHealthCheck
from provisioner.probes import MAX_OBJECT_BYTES, HealthCheck, as_entry, health_checks
from provisioner.values import Health, HealthState, JsonObject

TIMEOUT_SECONDS = 10.0
MAX_MEMORY_BYTES = 512 * 1024 * 1024
MAX_BATCH_BYTES = 32 * 1024 * 1024


def evaluated(
    questions: Sequence[tuple[HealthCheck, JsonObject]], *, timeout_seconds: float = TIMEOUT_SECONDS
) -> list[Health]:
    """The answer to each (check, live object), in their order; what has no answer is Unknown, in words."""
    lines, left = [], MAX_BATCH_BYTES
    answers: list[Health | None] = []
    for check, obj in questions:
        line = json.dumps([as_entry(check), _without_managed_fields(obj)])
        problem = _too_big(len(line), left)
        answers.append(Health(HealthState.UNKNOWN, problem) if problem else None)
        if not problem:
            lines.append(line)
            left -= len(line)
    found = iter(_asked(lines, timeout_seconds)) if lines else iter(())
    return [answer or next(found) for answer in answers]


def _too_big(size: int, left: int) -> str:
    if size > MAX_OBJECT_BYTES:
        return f"not evaluated: the object has {size} bytes; CEL checks are for at most {MAX_OBJECT_BYTES}"
    if size > left:
        return f"not evaluated: the CEL checks of one look are given at most {MAX_BATCH_BYTES} bytes of objects"
    return ""


def _asked(lines: list[str], timeout_seconds: float) -> list[Health]:
    try:
        done = subprocess.run(  # noqa: S603 -- our own interpreter and module; what is untrusted comes in as text
            [sys.executable, "-m", __name__],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        found = [Health(HealthState(state), str(words)) for state, words in map(json.loads, done.stdout.splitlines())]
        why = "its process ended early (too much memory or time)"
    except subprocess.TimeoutExpired:
        found, why = [], f"the CEL checks took longer than {timeout_seconds:g} s"
    except (OSError, ValueError) as exc:
        found, why = [], f"the CEL checks could not be run ({type(exc).__name__})"
    lost = Health(HealthState.UNKNOWN, f"not evaluated: {why}")
    return [*found[: len(lines)], *[lost] * (len(lines) - len(found))]


def _without_managed_fields(obj: JsonObject) -> dict[str, Any]:
    """Who wrote which field is no state, and often half of an object."""
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return {**obj, "metadata": meta}


def main() -> None:
    """The other side: one (entry, object) a line comes in, one (state, words) a line goes out."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(TIMEOUT_SECONDS), int(TIMEOUT_SECONDS)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    for line in sys.stdin:
        entry, obj = json.loads(line)
        try:
            health = health_checks({"healthChecks": [entry]})[0].judge(obj)
        except (BadHealthCheck, MemoryError) as exc:
            health = Health(HealthState.UNKNOWN, f"not evaluated: {exc or 'too much memory'}")
        sys.stdout.write(json.dumps([health.state, health.message]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
