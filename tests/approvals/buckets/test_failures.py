"""Why a bucket cannot be used, in words that name no address and no credential: what was found and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from approvals import store
from approvals.buckets.bucket import Bucket
from approvals.buckets.location import Location
from approvals.errors import StoreUnavailable
from tests.support.servers.http import Authority, FileServer
from tests.support.servers.process import free_port
from tests.support.servers.s3 import AWS, Wire

NAME = f"sha256/aa/{'a' * 64}"


def said(act: Callable[[], object]) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        act()
    words = str(caught.value)
    assert "127.0.0.1" not in words
    assert not any(value in words for value in AWS.values() if len(value) > 5)
    return words


@pytest.mark.parametrize(
    ("act", "doing"),
    [
        (lambda bucket: bucket.look(), "listing objects"),
        (lambda bucket: bucket.exists(NAME), "looking for an object"),
        (lambda bucket: bucket.open(NAME), "reading an object"),
        (lambda bucket: bucket.replace(NAME, [b"x"]), "writing an object"),
        (lambda bucket: bucket.delete(NAME), "deleting an object"),
        (lambda bucket: list(bucket.stored()), "listing objects"),
        (
            lambda bucket: bucket.collect_unfinished(timezone.now(), store.is_ours),
            "looking for uploads that were never finished",
        ),
    ],
    ids=["look", "exists", "open", "replace", "delete", "stored", "collect"],
)
def test_a_bucket_that_is_missing_is_never_taken_for_an_empty_one(
    location: Location, act: Callable[[Bucket], object], doing: str
) -> None:
    words = said(lambda: act(Bucket(replace(location, bucket="nobody-made-this"))))
    assert words == (
        f"the content store could not be used ({doing}): the bucket does not exist; create it, or correct "
        "PRATIQUE_CONTENT_S3_BUCKET or _ENDPOINT"
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "another"}, "credentials are not accepted (SignatureDoesNotMatch); replace them"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "credentials are not accepted (InvalidAccessKeyId); replace them"),
        ({"AWS_ACCESS_KEY_ID": ""}, "no credentials; give it some in one of AWS's own places"),
    ],
    ids=["secret", "key", "none"],
)
def test_credentials(location: Location, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], words: str) -> None:
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    if not all(changed.values()):
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert words in said(Bucket(location).look)


def test_clocks_that_differ(location: Location) -> None:
    with time_machine.travel(timezone.now() + timedelta(hours=2)):
        words = said(Bucket(location).look)
    assert "the clocks of this machine and of the S3 server differ too much (here 20" in words
    assert " GMT); set them by NTP" in words


def test_nobody_listens_there(location: Location) -> None:
    words = said(Bucket(replace(location, endpoint=f"http://127.0.0.1:{free_port()}")).look)
    assert "no connection to the S3 server; check PRATIQUE_CONTENT_S3_ENDPOINT" in words


@pytest.mark.thorough
def test_a_server_that_does_not_answer_is_not_waited_for_long(location: Location, wire: Wire) -> None:
    """Beside a locked row, and for a probe."""
    wire.hold_up = 0
    for act in (Bucket.look, lambda bucket: bucket.delete(NAME)):
        assert "the S3 server did not answer in time" in said(
            lambda act=act: act(Bucket(replace(location, endpoint=wire.url)))
        )


def test_a_certificate_of_an_unknown_authority_and_a_server_that_is_no_s3(
    location: Location, http_server: FileServer, authority: Authority
) -> None:
    http_server.serve(f"/{location.bucket}", b"<html><body>Welcome to nginx</body></html>")
    over_tls = replace(location, endpoint=http_server.https_url)
    assert "name its authority in PRATIQUE_CONTENT_S3_CA_FILE" in said(Bucket(over_tls).look)
    assert "is no S3 server" in said(Bucket(replace(over_tls, ca_file=str(authority.ca_file))).look)


def test_tls_to_a_server_without_it(location: Location) -> None:
    words = said(Bucket(replace(location, endpoint=location.endpoint.replace("http:", "https:"))).look)
    assert "check whether PRATIQUE_CONTENT_S3_ENDPOINT is http:// or https://" in words


def test_the_region_that_the_server_expects_is_found_by_itself(location: Location) -> None:
    Bucket(replace(location, region="us-west-9")).look()
