"""What the cluster shows of a catalog: whether it is offered, whether its source answers, and what is wrong in it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from approvals.models import Catalog, CatalogEdition
from approvals.steps.catalogs.status import catalog_status

READ = datetime(2026, 11, 25, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 26, 12, tzinfo=UTC)


def catalog(edition: CatalogEdition | None = None, **fields: Any) -> Catalog:
    return Catalog(name="port", generation=3, spec={}, seen_at=READ, edition=edition, **fields)


def edition(*problems: tuple[str, str]) -> CatalogEdition:
    counts = {"package_count": 2, "channel_count": 3, "bundle_count": 5, "problem_count": len(problems)}
    return CatalogEdition(pk=1, digest="sha256:one", read_at=READ, problems=list(problems), **counts)


def conditions(row: Catalog) -> dict[str, Any]:
    return {one["type"]: one for one in catalog_status(row)["conditions"]}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(
            catalog(),
            [
                ("Ready", "False", "NotReadYet"),
                ("SourcesAvailable", "Unknown", "NotCheckedYet"),
                ("Sound", "Unknown", "NotReadYet"),
                ("Progressing", "False", "NotReading"),
            ],
            id="new",
        ),
        pytest.param(
            catalog(reading_since=READ),
            [
                ("Ready", "False", "Reading"),
                ("SourcesAvailable", "Unknown", "NotCheckedYet"),
                ("Sound", "Unknown", "NotReadYet"),
                ("Progressing", "True", "Reading"),
            ],
            id="being read",
        ),
        pytest.param(
            catalog(problem="404", problem_code="source-unavailable", problem_since=READ),
            [
                ("Ready", "False", "SourceUnavailable"),
                ("SourcesAvailable", "False", "SourceUnavailable"),
                ("Sound", "Unknown", "NotReadYet"),
                ("Progressing", "False", "NotReading"),
            ],
            id="never read",
        ),
        pytest.param(
            catalog(edition(), looked_at=READ),
            [
                ("Ready", "True", "Read"),
                ("SourcesAvailable", "True", "Available"),
                ("Sound", "True", "NoProblems"),
                ("Progressing", "False", "NotReading"),
            ],
            id="read",
        ),
        pytest.param(
            catalog(edition(("a", "b")), problem="404", problem_code="source-unavailable", problem_since=READ),
            [
                ("Ready", "True", "Read"),
                ("SourcesAvailable", "False", "SourceUnavailable"),
                ("Sound", "False", "Problems"),
                ("Progressing", "False", "NotReading"),
            ],
            id="read, with problems, and down",
        ),
    ],
)
def test_conditions(row: Catalog, expected: list[tuple[str, str, str]]) -> None:
    assert [(kind, one["status"], one["reason"]) for kind, one in conditions(row).items()] == expected


def test_the_first_problems_are_said_and_how_many_more_there_are() -> None:
    row = catalog(edition(*((f"package p{number}", "is wrong\u202e") for number in range(7))), looked_at=READ)
    message = conditions(row)["Sound"]["message"]
    assert message.splitlines()[0].startswith("7 problems")
    assert "package p4: is wrong\\u202e" in message
    assert "package p5" not in message
    assert "2 more" in message


def test_a_condition_says_since_when_it_is_so_not_when_it_was_last_looked_at() -> None:
    row = catalog(edition(), looked_at=READ)
    row.status = catalog_status(row)
    row.looked_at = LATER
    again = conditions(row)
    assert again["SourcesAvailable"]["lastTransitionTime"] == "2026-11-25T12:00:00Z"
    row.problem, row.problem_code, row.problem_since = "404", "source-unavailable", LATER
    assert conditions(row)["SourcesAvailable"]["lastTransitionTime"] == "2026-11-26T12:00:00Z"


def test_what_was_never_read_has_no_digest() -> None:
    assert "digest" not in catalog_status(catalog())
    assert catalog_status(catalog(edition(), looked_at=READ)) | {"conditions": []} == {
        "observedGeneration": 3,
        "conditions": [],
        "lookedAt": "2026-11-25T12:00:00Z",
        "digest": "sha256:one",
        "readAt": "2026-11-25T12:00:00Z",
        "packages": 2,
        "channels": 3,
        "bundles": 5,
        "problems": 0,
    }
