"""The settings of the bucket: what is wrong with them is said before anything starts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from approvals.buckets.location import Location, location_of
from approvals.project import configuration

BUCKET = {"PRATIQUE_CONTENT_S3_BUCKET": "contents"}


def test_a_bucket_is_named_with_all_that_belongs_to_it() -> None:
    given = {
        **BUCKET,
        "PRATIQUE_CONTENT_S3_PREFIX": "pratique/production/",
        "PRATIQUE_CONTENT_S3_ENDPOINT": "https://s3.example.com:9000/",
        "PRATIQUE_CONTENT_S3_REGION": "eu-central-1",
        "PRATIQUE_CONTENT_S3_PATH_STYLE": "true",
    }
    found = location_of(configuration.read(given))
    assert found == Location("contents", "pratique/production/", "https://s3.example.com:9000", "eu-central-1", True)
    assert str(found) == "s3://contents/pratique/production/ at https://s3.example.com:9000"
    assert location_of(configuration.read({})) is None


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("BUCKET", "s3://contents", r"BUCKET: 's3://contents' is not the name of a bucket: expected 3 to 63 of"),
        ("PREFIX", "/pratique", r"PREFIX: '/pratique' is not a prefix: expected a path that ends with a slash"),
        ("PREFIX", "a/../b/", "PREFIX: .* is not a prefix"),
        ("ENDPOINT", "s3.example.com", r"ENDPOINT: this is not the address of an S3 server: expected http\(s\)://HOST"),
        ("ENDPOINT", "https://me:hunter2@s3.example.com", "ENDPOINT: an address holds no credentials"),
        ("ENDPOINT", "https://s3.example.com/contents", "ENDPOINT: .* has a path or a query: .*CONTENT_S3_PREFIX"),
        ("REGION", "Europe", "REGION: 'Europe' is not a region"),
        ("CA_FILE", "/nowhere.crt", "CA_FILE: '/nowhere.crt' is not a file"),
        ("CA_FILE", __file__, "CA_FILE: .* holds no certificate authorities in PEM"),
        ("PATH_STYLE", "perhaps", "PATH_STYLE: 'perhaps' is not a boolean"),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_words(name: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"PRATIQUE_CONTENT_S3_{words}") as caught:
        configuration.read({**BUCKET, f"PRATIQUE_CONTENT_S3_{name}": value})
    assert "hunter2" not in str(caught.value)


def test_what_says_nothing_without_a_bucket_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match=r"_BUCKET is empty, but PRATIQUE_CONTENT_S3_REGION is set: name the bucket"):
        configuration.read({"PRATIQUE_CONTENT_S3_REGION": "eu-central-1"})


def test_an_authority_without_tls_is_refused(authority: Any) -> None:
    plain = {"PRATIQUE_CONTENT_S3_CA_FILE": str(authority.ca_file), "PRATIQUE_CONTENT_S3_ENDPOINT": "http://s3.example"}
    with pytest.raises(ValueError, match=r"CA_FILE is set, but .*_ENDPOINT is http://"):
        configuration.read({**BUCKET, **plain})


def test_without_its_package_a_bucket_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "boto3" else real(name, *rest))
    configuration.read({})
    with pytest.raises(ValueError, match=r"boto3, which is not installed: pip install 'pratique\[s3\]'"):
        configuration.read(BUCKET)
