"""How much longer an innocent request takes to its report while ten hostile ones are prepared beside it.

Run by `make bench`, on a real API server: one service, alone and in bad company in turn, as a ratio. The innocent
request is a small bundle, and a real one, of somebody else than the hostile ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from approvals.working import linux
from tests.support.folders import CORPUS
from tests.support.journeys.contents import bundles
from tests.support.journeys.hostile_content import harmless, packed
from tests.support.journeys.machine import Machine, environment
from tests.support.journeys.neighbours import neighbourhood
from tests.support.kubernetes.controlplane import ControlPlane

ROUNDS = 7
# Nobody's spec slows another's request beyond twice its usual time.
MOST = 2.0
SETTLED = ("failed", "in_review")
INGRESS = CORPUS / "plain" / "ingress-nginx" / "controller-v1.12.1" / "provider" / "cloud"


def ingress(name: str) -> bytes:
    return packed(bundles.folder(INGRESS))


@pytest.mark.controlplane
@pytest.mark.corpus
@pytest.mark.parametrize("make", [harmless, ingress])
def test_hostile_neighbours(
    make: Callable[[str], bytes], own_controlplane: ControlPlane, tmp_path: Path, redis: str
) -> None:
    machine = Machine(tmp_path, environment(tmp_path, redis))
    try:
        with neighbourhood(machine, own_controlplane.endpoint, "hostile") as here:
            here.seconds_until_ready("hostile-first", make)
            here.know_authors()
            idle = sum(map(linux.own_mib, linux.family(here.worker.pid)))
            alone, beside = [], []
            for number in range(ROUNDS):
                alone.append(here.seconds_until_ready(f"hostile-alone-{number}", make))
                hostile = here.wish_hostile()
                beside.append(here.seconds_until_ready(f"hostile-beside-{number}", make))
                here.until(hostile, SETTLED, 240)
                here.remove(hostile)
                here.until_gone(hostile)
            peak = here.worker_mib()
    finally:
        machine.stop()
    # Of the two in each round, which follow each other closely: what else the machine does changes from round to round.
    ratio = statistics.median(one / other for one, other in zip(beside, alone, strict=True))
    shown = [" ".join(f"{one:.2f}" for one in times) for times in (alone, beside)]
    print(f"\nan innocent request ({make.__name__}) alone {shown[0]}, beside ten hostile ones {shown[1]} (seconds)")
    print(f"median of the ratios {ratio:.2f} (goal at most {MOST}); the worker held {peak:.0f} MiB at most,")
    print(f"and {idle:.0f} MiB with all its processes before it began")
    assert ratio <= MOST
