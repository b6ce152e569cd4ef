"""How soon lists answer with 100,000 requests, 2,000 deployments and 500 in review, and the pages of large requests.

Run by `make bench`: the shipped gunicorn on PostgreSQL and Redis, and a real API server, which is asked who may approve
what. Every list is asked for by people who may approve everything, some things by name, nothing, and by who reads one
small cluster only.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench.installation import rights
from tests.bench.visiting import Installation, installed, late, show
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.postgresql import Postgres

pytestmark = pytest.mark.controlplane

ROUNDS = 10
LIST_SECONDS, REQUEST_SECONDS, CRD_SECONDS = 0.150, 0.300, 0.500
TABS = [f"/?tab={name}" for name in ("needs-me", "mine", "open", "applying", "decided", "all")]
FILTERED = [
    f"/?tab=all&{query}"
    for query in (
        "sort=worst", "sort=deployment", "sort=oldest", "cluster=edge", "severity=critical&purpose=delete",
        "purpose=rollback", "requester=asker-17", "requester=nobody", "rule=OB-07", "rule=OB-99", "search=app-0001",
        "search=kafka-77", "search=nothing-like-it", "state=failed&sort=worst",
        # What PostgreSQL takes for many, and is few, or none; and the other way round.
        "requester=asker-17&search=kafka", "rule=OB-07&severity=critical&sort=deployment", "format=plain&sort=deployment",
        "rule=OB-07&state=failed&cluster=prod-eu&search=v2", "severity=safe&state=denied&cluster=edge", "search=stored",
    )
]  # fmt: skip
OTHERS = [
    *(
        "/home",
        "/home/count",
        "/list?tab=open",
        "/deployments",
        "/deployments?search=zzz",
        "/audit",
        "/audit?actor=asker-17",
        "/audit?actor=nobody",
    ),
    *("/audit?deployment=app-00077", "/audit?via=token", "/policies", "/policies/of/policy-1"),
    *("/audit?actor=asker-17&via=machine", "/audit?actor=a&until=2026-03-01", "/audit?via=kubectl&since=2026-11-01"),
]
REST = [
    f"/api/v1/{path}"
    for path in (
        "requests", "requests?worst=critical", "requests?state=in_review", "requests?rule=OB-99", "deployments",
        "audit", "audit?actor=nobody", "policies", "clusters", "requests?page_size=200", "requests?search=kafka-77",
        "requests?requester=asker-17&state=failed", "audit?verb=session.began", "audit?cluster=edge&actor=asker-17",
    )
]  # fmt: skip
# Of these a page far from the first is asked for as well, by its cursor.
DEEP = {
    "/?tab=all": 1_500,
    "/?tab=all&sort=deployment": 1_500,
    "/?tab=decided&sort=worst": 1_000,
    "/audit": 3_000,
    "/api/v1/requests": 1_500,
}


@pytest.fixture(scope="module")
def installation(
    controlplane: Endpoint, postgres: Postgres, redis: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("lists")
    with installed(controlplane, postgres, redis, folder, rights=rights(), module="tests.bench.installation") as found:
        yield found


def test_figures_of_lists(installation: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    everybody = installation.visitor("ada")
    deep = [everybody.beyond(path, number) for path, number in DEEP.items()]
    taken: dict[str, list[float]] = {path: [] for path in (*TABS, *FILTERED, *OTHERS, *REST, *deep)}
    for name in installation.told["sessions"]:
        visitor = installation.visitor(name)
        # A person who reads one cluster sees no policy of another.
        paths = [path for path in taken if name != "edgar" or "policies/of" not in path]
        for path in paths[:2] * 4:
            visitor.get(path)
        for _ in range(ROUNDS):
            for path in paths:
                taken[path].append(visitor.get(path)[1])
    with capsys.disabled():
        show("lists of 100,000 requests", taken)
    assert not late(taken, dict.fromkeys(taken, LIST_SECONDS))


def test_figures_of_large_requests_and_deployments(
    installation: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request with 1,000 findings and 500 objects, a CRD of 10,000 lines, a deployment with 5,000 objects."""
    visitor, told = installation.visitor("ada"), installation.told
    bounds = {
        **{f"{told['large']}{tab}": REQUEST_SECONDS for tab in ("", "/findings", "/changes", "/activity")},
        **{f"{told['crd']}{query}": CRD_SECONDS for query in ("", "?view=split", "?lines=all", "?open=2000-2400")},
        told["running"]: REQUEST_SECONDS,
        "/clusters": LIST_SECONDS,
    }
    taken: dict[str, list[float]] = {}
    for path in bounds:
        for _ in range(4):
            visitor.get(path)
        taken[path] = [visitor.get(path)[1] for _ in range(4 * ROUNDS)]
    with capsys.disabled():
        show("pages", taken)
    assert not late(taken, bounds)
