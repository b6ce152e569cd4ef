"""The operator's file of issuers: what it says, and what is wrong with it, by its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.oidc import parse_issuers
from approvals.oidc.issuers import DEFAULT_SCOPES, OidcClient, Prefixed

MAPPINGS = {"username": {"claim": "sub", "prefix": "oidc:"}, "groups": {"claim": "groups", "prefix": "oidc:"}}
RULES = {"name": "production", "claimMappings": MAPPINGS}
EXAMPLE: dict[str, Any] = {
    "name": "example",
    "title": "Example",
    "url": "https://sso.example.com/realms/main",
    "client": {"id": "pratique", "secretFile": "secret"},
    "clusters": [{**RULES, "claimValidationRules": [{"claim": "hd", "requiredValue": "example.com"}]}],
}


def write(folder: Path, *issuers: Any) -> str:
    (folder / "secret").write_text("s3cret\n")
    path = folder / "oidc.yaml"
    path.write_text(yaml.safe_dump({"issuers": [*issuers]}))
    return str(path)


def test_an_issuer_counts_where_the_operator_says(tmp_path: Path) -> None:
    issuers = parse_issuers(write(tmp_path, EXAMPLE))
    issuer = issuers.with_url("https://sso.example.com/realms/main")
    assert issuer
    assert issuer == issuers.named("example")
    assert issuer.client == OidcClient("pratique", "s3cret", DEFAULT_SCOPES)
    rules = issuer.rules_on("production")
    assert rules
    assert (rules.username, rules.groups) == (Prefixed("sub", "oidc:"), Prefixed("groups", "oidc:"))
    assert rules.required == (("hd", "example.com"),)
    assert (issuer.rules_on("staging"), issuers.of_cluster("staging")) == (None, ())
    assert issuers.of_cluster("production") == (issuer,)


def test_without_a_file_there_are_no_issuers() -> None:
    assert tuple(parse_issuers("")) == ()


def test_S30_no_secret_stands_in_what_is_printed(tmp_path: Path) -> None:
    assert "s3cret" not in repr(parse_issuers(write(tmp_path, EXAMPLE)))


def changed(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in {**EXAMPLE, **fields}.items() if value is not None}


def with_username(**username: Any) -> dict[str, Any]:
    return changed(clusters=[{"name": "production", "claimMappings": {"username": username}}])


@pytest.mark.parametrize(
    ("issuers", "words"),
    [
        ([changed(url="http://sso.example.com")], r"issuers\[0\].url"),
        ([changed(url="https://sso.example.com/?a=b")], r"issuers\[0\].url"),
        ([changed(url="https://user@sso.example.com")], r"issuers\[0\].url"),
        ([changed(url="https://")], r"issuers\[0\].url"),
        ([changed(name="Not A Name")], r"issuers\[0\].name"),
        ([changed(client=None)], "client"),
        ([changed(client={"id": "a", "secretFile": "none"})], "secretFile"),
        ([changed(client={"id": "a", "secret": "b"})], "unknown field secret"),
        ([changed(client={"id": "a", "scopes": ["profile"]})], "openid"),
        ([changed(client={"id": 3})], r"client.id: expected a string, found a number"),
        ([changed(clusters={"production": {}})], r"clusters: expected a list, found a mapping"),
        ([changed(clusters=[{"name": "a"}])], "claimMappings is missing"),
        ([changed(clusters=[RULES, RULES])], "twice"),
        ([with_username(claim="sub")], "prefix is missing"),
        ([with_username(expression="claims.sub")], "expressions are not supported"),
        ([EXAMPLE, EXAMPLE], "twice"),
        ([EXAMPLE, changed(name="other")], "twice"),
        ([EXAMPLE, changed(name="other", url="https://b.example")], "either could name people of the other"),
        (["text"], r"issuers\[0\]: expected a mapping, found a string"),
    ],
)
def test_a_mistake_is_told_by_its_place(tmp_path: Path, issuers: list[Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_issuers(write(tmp_path, *issuers))


@pytest.mark.parametrize(
    "raw", [b"{", b"\xff\xfe", b"- a", b"issuers: 3", b"other: []", b"!!python/object:os.system {}", b" " * 1_000_001]
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "oidc.yaml"
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="oidc.yaml|file|expected"):
        parse_issuers(str(path))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        parse_issuers(str(tmp_path / "none.yaml"))


def test_S01_issuers_with_prefixes_apart_share_a_cluster(tmp_path: Path) -> None:
    other = {"username": {"claim": "email", "prefix": "partner:"}, "groups": {"claim": "groups", "prefix": "partner:"}}
    partner = changed(
        name="partner", url="https://b.example", clusters=[{"name": "production", "claimMappings": other}]
    )
    assert len(parse_issuers(write(tmp_path, EXAMPLE, partner)).of_cluster("production")) == 2
