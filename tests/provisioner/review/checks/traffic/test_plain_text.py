"""Hosts of an Ingress that are no longer served by TLS, or with another certificate."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.traffic import destinations
from provisioner.values import Action, Severity
from tests.support.provisioner.contents import an_object, findings_of, named, planned

BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def ingress(*hosts: str, tls: list[dict[str, Any]] | None = None, **rest: Any) -> dict[str, Any]:
    rules = [{"host": host} if host else {} for host in hosts]
    return an_object(
        "networking.k8s.io/v1", "Ingress", "web", "shop", spec={"rules": rules, **({"tls": tls} if tls else {}), **rest}
    )


def by(*hosts: str) -> dict[str, Any]:
    return {"secretName": "certificate", "hosts": [*hosts]} if hosts else {"secretName": "certificate"}


@pytest.mark.parametrize(
    ("before", "after", "hosts"),
    [
        (ingress("a.org", tls=[by("a.org")]), ingress("a.org"), ["a.org"]),
        (
            ingress("a.org", "b.org", tls=[by("a.org", "b.org")]),
            ingress("a.org", "b.org", tls=[by("b.org")]),
            ["a.org"],
        ),
        (ingress("a.org", "b.org", tls=[by("a.org", "b.org")]), ingress("b.org", tls=[by("b.org")]), []),
        (ingress("a.org", tls=[by("a.org")]), ingress("a.org", tls=[by()]), []),
        (ingress("a.org", tls=[by()]), ingress("a.org"), ["a.org"]),
        (ingress("", tls=[by()]), ingress(""), ["every host"]),
        (ingress(tls=[by()]), ingress(), ["every host"]),
        (
            ingress("a.org", tls=[by("a.org"), by()], defaultBackend=BACKEND),
            ingress("a.org", tls=[by("a.org")], defaultBackend=BACKEND),
            ["every host"],
        ),
        (ingress("a.org", tls=[by("a.org", "b.org")]), ingress("a.org", "b.org"), ["a.org"]),
        (ingress("a.org", tls=[by("b.org")]), ingress("a.org", "b.org"), []),
        (ingress("a.org", tls=[by()]), ingress("a.org", "", tls=[by("a.org")]), []),
        (ingress("a.org"), ingress("a.org"), []),
        (ingress("a.org"), ingress("a.org", tls=[by("a.org")]), []),
    ],
    ids=[
        "gone",
        "one of two",
        "the host is gone too",
        "for every host now",
        "by an entry for every host",
        "of every host",
        "of an Ingress without rules",
        "of every host that no rule names",
        "another host was not served before",
        "no such host was served before",
        "every host was not served before",
        "never",
        "newly",
    ],
)
def test_a_host_that_is_no_longer_served_by_tls_is_told(
    before: dict[str, Any], after: dict[str, Any], hosts: list[str]
) -> None:
    found = named(findings_of(destinations.TLS_CHECK, planned(after, Action.UPDATE, before=before)), "ING-04")
    assert [one.evidence["hosts"] for one in found] == ([hosts] if hosts else [])
    assert all(one.severity is Severity.DANGEROUS and one.is_new for one in found)


@pytest.mark.parametrize(
    ("before", "after", "variant"),
    [("one", "other", "certificate"), ("", "other", "own-certificate"), ("one", "", "default-certificate")],
)
def test_another_certificate_is_notable(before: str, after: str, variant: str) -> None:
    old, new = (ingress("a.org", tls=[{"hosts": ["a.org"], "secretName": one}]) for one in (before, after))
    (found,) = named(findings_of(destinations.TLS_CHECK, planned(new, Action.UPDATE, before=old)), "ING-04")
    assert (found.severity, found.variant) == (Severity.NOTABLE, variant)


def test_a_new_ingress_without_tls_is_not_told() -> None:
    assert not findings_of(destinations.TLS_CHECK, planned(ingress("a.org"), Action.CREATE))
