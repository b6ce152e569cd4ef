"""Which bucket holds the contents and how it is reached, from the operator's settings.

It is configuration, never content: no spec and no bundle names it, so the rules about sources' addresses (S18) are not
asked, and credentials are those of the process (AWS's own order of places).
"""

from __future__ import annotations

import importlib.util
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html: the characters that need no care.
PREFIX = re.compile(r"([A-Za-z0-9!_.*'()-]+/)+")
MAX_PREFIX = 512
ENVIRONMENT = "PRATIQUE_"
# What the environment of AWS holds and no log line may.
SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN")
# All but the bucket itself, which they say nothing without.
DETAILS = (
    "CONTENT_S3_PREFIX",
    "CONTENT_S3_ENDPOINT",
    "CONTENT_S3_REGION",
    "CONTENT_S3_PATH_STYLE",
    "CONTENT_S3_CA_FILE",
)


@dataclass(frozen=True, slots=True)
class Location:
    """Empty: of `endpoint`, AWS; of `region`, what the environment of AWS says; of `ca_file`, the usual authorities."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    is_path_style: bool = False
    ca_file: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}" + (f" at {self.endpoint}" if self.endpoint else "")


def location_of(values: Mapping[str, Any]) -> Location | None:
    """Where the settings put the contents; None: into a folder."""
    if not values["CONTENT_S3_BUCKET"]:
        return None
    return Location(
        values["CONTENT_S3_BUCKET"],
        values["CONTENT_S3_PREFIX"],
        values["CONTENT_S3_ENDPOINT"],
        values["CONTENT_S3_REGION"],
        values["CONTENT_S3_PATH_STYLE"],
        values["CONTENT_S3_CA_FILE"],
    )


def bucket_name(text: str) -> str:
    if text and not BUCKET.fullmatch(text):
        raise ValueError(
            f"{text!r} is not the name of a bucket: expected 3 to 63 of a-z, 0-9, '.' and '-', without s3://"
        )
    return text


def key_prefix(text: str) -> str:
    """A path that ends with a slash, or ""."""
    if text and (not PREFIX.fullmatch(text) or len(text) > MAX_PREFIX or {".", ".."} & set(text.split("/"))):
        raise ValueError(
            f"{text!r} is not a prefix: expected a path that ends with a slash, such as pratique/production/"
        )
    return text


def region_name(text: str) -> str:
    if text and not REGION.fullmatch(text):
        raise ValueError(f"{text!r} is not a region: expected a name such as eu-central-1")
    return text


def endpoint_url(text: str) -> str:
    """The address of an S3 server, without credentials, path and query; or ""."""
    if not text:
        return ""
    expected = "expected http(s)://HOST or http(s)://HOST:PORT, such as https://s3.example.com"
    try:
        url = urlsplit(text)
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError(f"this is not the address of an S3 server: {expected}")
    if url.username is not None or url.password is not None:
        raise ValueError(f"an address holds no credentials, which come from AWS's own places: {expected}")
    if url.path not in ("", "/") or url.query or url.fragment:
        raise ValueError(
            f"{text!r} has a path or a query: {expected}; folders belong in {ENVIRONMENT}CONTENT_S3_PREFIX"
        )
    return text.rstrip("/")


def authorities_file(text: str) -> str:
    """A file of certificate authorities as PEM, or ""."""
    if not text:
        return ""
    if not os.path.isfile(text):
        raise ValueError(f"{text!r} is not a file: expected certificate authorities in PEM")
    try:
        ssl.create_default_context(cafile=text)
    except (OSError, ValueError) as exc:
        raise ValueError(f"{text!r} holds no certificate authorities in PEM ({exc})") from exc
    return text


def check_location(values: Mapping[str, Any]) -> None:
    """Raises ValueError where part of the settings would be passed over, or nothing could reach the bucket."""
    if not values["CONTENT_S3_BUCKET"]:
        if given := [f"{ENVIRONMENT}{name}" for name in DETAILS if values[name]]:
            raise ValueError(
                f"{ENVIRONMENT}CONTENT_S3_BUCKET is empty, but {', '.join(given)} is set: name the bucket, or remove "
                f"the others to keep contents in the folder {ENVIRONMENT}CONTENT_DIR"
            )
        return
    if values["CONTENT_S3_CA_FILE"] and values["CONTENT_S3_ENDPOINT"].startswith("http://"):
        raise ValueError(
            f"{ENVIRONMENT}CONTENT_S3_CA_FILE is set, but {ENVIRONMENT}CONTENT_S3_ENDPOINT is http://, where no "
            "certificate is looked at: expected https://"
        )
    if importlib.util.find_spec("boto3") is None:
        raise ValueError(
            f"{ENVIRONMENT}CONTENT_S3_BUCKET: a bucket needs the package boto3, which is not installed: "
            "pip install 'pratique[s3]'"
        )
