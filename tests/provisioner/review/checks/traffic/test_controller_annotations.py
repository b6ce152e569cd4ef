"""Annotations that controllers run as configuration, that guard access, or that send traffic elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.traffic import controller_annotations
from provisioner.review.checks.traffic.controller_annotations import ANNOTATIONS, Effect, find_annotation
from provisioner.review.rules import messages_of
from provisioner.values import Action, Finding
from tests.support.provisioner.contents import an_object, findings_of, planned

NGINX = "nginx.ingress.kubernetes.io/"
ALB = "alb.ingress.kubernetes.io/"


def ingress(kind: str = "networking.k8s.io/v1 Ingress", **found: str) -> dict[str, Any]:
    made = an_object(*kind.split(), "web", "shop")
    made["metadata"]["annotations"] = found
    return made


def found_by(before: dict[str, Any] | None, after: dict[str, Any]) -> list[Finding]:
    action = Action.CREATE if before is None else Action.UPDATE
    found = findings_of(controller_annotations.CHECK, planned(after, action, before=before))
    return [finding for finding in found if finding.rule.startswith("ING-")]


def change_of(name: str, before: str | None, after: str | None) -> list[tuple[str, str]]:
    """What is said where one find_annotation of an existing Ingress changes."""
    sides = ({name: value} if value is not None else {} for value in (before, after))
    old, new = (ingress(**side) for side in sides)
    return [(finding.rule, str(finding.severity)) for finding in found_by(old, new)]


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("configuration-snippet", None, "deny all;", ("ING-01", "dangerous")),
        ("server-snippet", "a;", "b;", ("ING-01", "dangerous")),
        ("server-snippet", "deny all;", None, ("ING-01", "notable")),
        ("auth-url", "https://a", None, ("ING-02", "dangerous")),
        ("auth-url", "https://a", "https://b", ("ING-02", "dangerous")),
        ("auth-url", None, "https://a", ("ING-02", "notable")),
        ("auth-tls-secret", "shop/ca", "shop/other", ("ING-02", "dangerous")),
        ("auth-tls-verify-client", "on", "off", ("ING-02", "dangerous")),
        ("auth-tls-verify-client", "off", None, ("ING-02", "notable")),
        ("whitelist-source-range", "10.0.0.0/8", "0.0.0.0/0", ("ING-02", "dangerous")),
        ("whitelist-source-range", "10.0.0.0/8", "10.0.0.0/8,192.0.2.1/32", ("ING-02", "dangerous")),
        ("whitelist-source-range", "10.0.0.0/8", "10.1.0.0/16, 10.2.0.0/16", ("ING-02", "notable")),
        ("whitelist-source-range", "10.0.0.0/8", "not a network", ("ING-02", "dangerous")),
        ("denylist-source-range", "10.0.0.0/8,192.0.2.0/24", "10.0.0.0/8", ("ING-02", "dangerous")),
        ("denylist-source-range", "10.0.0.0/8", "10.0.0.0/8,192.0.2.0/24", ("ING-02", "notable")),
        ("ssl-redirect", None, "false", ("ING-02", "dangerous")),
        ("ssl-redirect", "false", "true", ("ING-02", "notable")),
        ("ssl-redirect", None, "true", None),
        ("enable-modsecurity", "false", None, None),
        ("mirror-target", None, "https://copy.example.net", ("ING-03", "dangerous")),
        ("mirror-target", "https://a", "https://b", ("ING-03", "dangerous")),
        ("permanent-redirect", "https://a", None, ("ING-03", "notable")),
        ("proxy-body-size", "1m", "8m", None),
    ],
)
def test_an_annotation_is_judged_by_what_the_controller_does_with_it(
    name: str, before: str | None, after: str | None, expected: tuple[str, str] | None
) -> None:
    assert change_of(f"{NGINX}{name}", before, after) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (f"{NGINX}configuration-snippet", "deny all;", ("ING-01", "dangerous")),
        (f"{NGINX}auth-url", "https://a", ("ING-02", "notable")),
        (f"{NGINX}ssl-redirect", "false", ("ING-02", "notable")),
        (f"{ALB}scheme", "internet-facing", ("ING-02", "notable")),
        (f"{ALB}actions.forward", "{}", ("ING-03", "notable")),
        (f"{NGINX}whitelist-source-range", "10.0.0.0/8", None),
        (f"{NGINX}rewrite-target", "/", None),
    ],
)
def test_of_a_new_object_only_what_concerns_others_is_told(
    name: str, value: str, expected: tuple[str, str] | None
) -> None:
    found = found_by(None, ingress(**{name: value}))
    assert [(finding.rule, str(finding.severity)) for finding in found] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("v1 Service", "service.beta.kubernetes.io/load-balancer-source-ranges"),
        ("v1 Service", "haproxy.org/allow-list"),
        ("gateway.networking.k8s.io/v1 HTTPRoute", "konghq.com/plugins"),
        ("route.openshift.io/v1 Route", "haproxy.router.openshift.io/ip_allowlist"),
        ("networking.k8s.io/v1 Ingress", "traefik.ingress.kubernetes.io/router.middlewares"),
        ("networking.k8s.io/v1 Ingress", "haproxy-ingress.github.io/auth-url"),
        ("networking.k8s.io/v1 Ingress", f"{ALB}inbound-cidrs"),
        ("networking.k8s.io/v1 Ingress", "nginx.com/jwt-key"),
    ],
)
def test_guards_of_other_controllers_are_known(kind: str, name: str) -> None:
    (one,) = found_by(ingress(kind, **{name: "10.0.0.0/8"}), ingress(kind))
    assert (one.rule, str(one.severity)) == ("ING-02", "dangerous")
    assert f"`{name}`" in one.message


def test_what_is_to_be_said_alike_of_one_object_is_one_finding_with_each_reason() -> None:
    guards = {f"{NGINX}auth-url": "https://user:hunter2@login.example.com", f"{NGINX}auth-tls-secret": "shop/ca"}
    (one,) = found_by(ingress(**guards), ingress())
    assert "which decides which client certificates are accepted; " in one.message
    assert [it["name"] for it in one.evidence["annotations"]] == sorted(guards)
    assert "hunter2" not in f"{one.message}{one.evidence}"


def test_no_annotation_of_other_kinds_is_judged() -> None:
    assert found_by(None, ingress("v1 ConfigMap", **{f"{NGINX}server-snippet": "x"})) == []


def test_each_annotation_of_the_table_stands_there_once_and_has_a_reason() -> None:
    names = [one.name for one in ANNOTATIONS]
    assert len(names) == len(set(names))
    assert all(f"why.{one.why}" in messages_of(one.rule).templates and "/" in one.name for one in ANNOTATIONS)
    assert all(one.effect is Effect.LEADS or not one.name.endswith("*") for one in ANNOTATIONS)


def test_a_name_with_a_star_stands_for_all_that_begin_so() -> None:
    found = find_annotation(f"{ALB}conditions.rule")
    assert found is not None
    assert found.effect is Effect.LEADS
    assert find_annotation(f"{ALB}conditions") is None
