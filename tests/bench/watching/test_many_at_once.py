"""200 BundleDeployments that one listed GitOps account makes at once: how soon all are in review, by how many calls.

Run by `make bench`. One worker, one watch, a real API server whose policies say who wrote.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.watching.crowd import crowd, processor_seconds
from tests.support.kubernetes.endpoint import Endpoint

AT_ONCE = 200
GOAL_SECONDS = 120.0
# One of them is the account's own; 10 are the goal, and a tenth more is as good.
MOST_CALLS = 12.0
# Leases and nodes of the control plane are no calls of ours.
CALLS = re.compile(r"^apiserver_request_total\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')


def calls(endpoint: Endpoint) -> Counter[str]:
    """All that the API server has answered, but watches: by verb, resource and subresource."""
    found: Counter[str] = Counter()
    for labels, count in CALLS.findall(str(endpoint.ask("GET", "/metrics"))):
        about = dict(LABEL.findall(labels))
        if about["verb"] != "WATCH" and about["resource"] != "leases":
            found[" ".join(about[name] for name in ("verb", "resource", "subresource")).strip()] += int(float(count))
    return found


@pytest.mark.controlplane
def test_figures_of_200_at_once(tmp_path: Path, controlplane: Endpoint, redis: str) -> None:
    with crowd(tmp_path, controlplane, redis) as here:
        before, began = calls(controlplane), time.perf_counter()
        here.bring_all([f"{here.mark}-{number:03}" for number in range(AT_ONCE)], here.controller)
        here.seconds_until_in_review(f"{here.mark}-", AT_ONCE)
        took, made = time.perf_counter() - began, calls(controlplane) - before
    each = {asked: round(count / AT_ONCE, 2) for asked, count in made.most_common() if count >= AT_ONCE / 20}
    print(
        f"\n{AT_ONCE} BundleDeployments at once are in review after {took:.0f} s; {made.total() / AT_ONCE:.1f} calls for"
        f" each, of which one writes it ({each}); all processes used {processor_seconds():.0f} s of processor"
    )
    assert took <= GOAL_SECONDS
    assert made.total() / AT_ONCE <= MOST_CALLS
