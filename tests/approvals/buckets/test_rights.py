"""The rights in the manual are enough, and without any one of them the command says which is missing."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from approvals.buckets.location import Location
from tests.support.folders import ROOT
from tests.support.secrets import keep
from tests.support.servers.s3 import S3Server
from tests.support.stores import use_bucket

pytestmark = pytest.mark.django_db
MANUAL = ROOT / "docs/operating/content-store.md"


def policy(location: Location, *, without: str = "") -> list[dict[str, Any]]:
    """The statements of the manual's policy, for this bucket."""
    text = MANUAL.read_text().split("```json", 1)[1].split("```", 1)[0]
    text = text.replace("pratique-contents", location.bucket).replace("production/", location.prefix)
    statements: list[dict[str, Any]] = json.loads(text)["Statement"]
    return [{**one, "Action": [action for action in one["Action"] if action != without]} for one in statements]


@pytest.fixture
def person(s3: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Location, dict[str, str]]:
    location, person = s3.bucket(), s3.person()
    use_bucket(settings, monkeypatch, location)
    settings.BUCKET = location
    for name, value in person.items():
        monkeypatch.setenv(name, value)
    return location, person


def check() -> str:
    said = StringIO()
    try:
        call_command("check_content_store", "--read", stdout=said)
    except CommandError as exc:
        return said.getvalue() + str(exc)
    return said.getvalue()


def test_the_rights_of_the_manual_are_enough(s3: S3Server, person: tuple[Location, dict[str, str]]) -> None:
    s3.allow(*person, policy(person[0]))
    keep("one")
    assert check().splitlines() == [
        f"content store: {person[0]}",
        "list: ok",
        "write: ok",
        "read: ok",
        "delete: ok",
        "delete unfinished uploads: ok",
        "1 of 1 contents were read, and have the right digests",
    ]


@pytest.mark.parametrize(
    ("right", "trial"),
    [
        ("s3:ListBucket", "list"),
        ("s3:PutObject", "write"),
        ("s3:GetObject", "read"),
        ("s3:DeleteObject", "delete"),
        ("s3:ListBucketMultipartUploads", "delete unfinished uploads"),
    ],
)
def test_a_right_that_is_missing_is_named(
    s3: S3Server, person: tuple[Location, dict[str, str]], right: str, trial: str
) -> None:
    s3.allow(*person, policy(person[0], without=right))
    (line,) = [line for line in check().splitlines() if "do not allow it" in line]
    assert line.startswith(f"{trial}: the content store could not be used")
    assert right in line.rpartition("(right: ")[2]
    assert "(AccessDenied)" in line


def test_a_bucket_that_is_missing_is_no_matter_of_rights(s3: S3Server, person: tuple[Location, dict[str, str]]) -> None:
    s3.client.delete_bucket(Bucket=person[0].bucket)
    said = check()
    assert said.count("the bucket does not exist") == 3
    assert "(right:" not in said
    assert said.endswith("3 of the things that Pratique does with the content store failed: see above")
