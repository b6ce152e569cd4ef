"""How soon the pages of catalogs answer: lists, 1,000 packages, 300 versions with their edges, comparing and installing.

Run by `make bench`: the shipped gunicorn on PostgreSQL and Redis, and a real API server, which is asked who may get what.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench.catalogs.offering import rights
from tests.bench.visiting import Installation, installed, late, show
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.postgresql import Postgres

pytestmark = pytest.mark.controlplane

# Of who may do everything; the others walk through the lists and packages half as often.
ROUNDS = 20
LIST_SECONDS, PAGE_SECONDS = 0.150, 0.300
LARGE, LONG = "/catalogs/prod/large", "/catalogs/prod/long/packages/harbour"
LISTS = [
    "/catalogs",
    "/catalogs?search=port-1",
    LARGE,
    f"{LARGE}?search=package-09",
    f"{LARGE}?search=papers",
    f"{LARGE}?search=nothing-like-it",
    "/catalogs/prod/long",
    "/api/v1/catalogs",
    "/api/v1/catalogs/prod/large/packages",
    "/api/v1/catalogs/prod/large/packages?page_size=200",
]
PACKAGES = [
    f"{LARGE}/packages/package-0500",
    LONG,
    f"{LONG}?page=4",
    f"{LONG}?channel=fast",
    "/api/v1/catalogs/prod/large/packages/package-0500",
    "/api/v1/catalogs/prod/long/packages/harbour",
]


@pytest.fixture(scope="module")
def installation(
    controlplane: Endpoint, postgres: Postgres, redis: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("catalogs")
    with installed(
        controlplane, postgres, redis, folder, rights=rights(), module="tests.bench.catalogs.offering"
    ) as found:
        yield found


def test_figures_of_catalogs(installation: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    told = installation.told
    asked = f"from={told['before']}&to={told['after']}"
    install = "/deployments/new?cluster=prod&catalog=long&package=harbour"
    creating = [
        f"{LONG}/changes",
        f"{LONG}/changes?{asked}",
        f"{LONG}/changes?to={told['after']}",
        f"{install}&channel=stable",
        f"{install}&channel=stable&version={told['before']}",
    ]
    deep = installation.visitor("ada").beyond(LARGE, 15)
    bounds = dict.fromkeys([*LISTS, deep], LIST_SECONDS) | dict.fromkeys([*PACKAGES, *creating], PAGE_SECONDS)
    taken: dict[str, list[float]] = {path: [] for path in bounds}
    for name in told["sessions"]:
        visitor = installation.visitor(name)
        paths = [path for path in bounds if name == "ada" or path not in creating]
        for path in paths:
            visitor.get(path)
        for _ in range(ROUNDS if name == "ada" else ROUNDS // 2):
            for path in paths:
                taken[path].append(visitor.get(path)[1])
    with capsys.disabled():
        show("catalogs: 60, one of 1,000 packages, a package of 300 versions", taken)
    assert not late(taken, bounds)
