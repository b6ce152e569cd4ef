"""Accounts that pods run as, their tokens, and configuration that they read."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from provisioner.review.checks.pods import credentials
from provisioner.review.frame import report
from provisioner.values import Action, Finding, Plan, Severity
from tests.support.provisioner.contents import (
    an_object,
    config_map,
    content_with,
    facts,
    findings_of,
    named,
    planned,
    reading,
    web_workload,
)
from tests.support.provisioner.roles import account, bound, cluster_role, group, rule

READS_SECRETS = cluster_role("secrets", rule("get list", "secrets"))
READS_PODS = cluster_role("pods", rule("get"))
STARTS_CODE = cluster_role("starts-code", rule("patch", "pods/ephemeralcontainers"))


def runs_as(name: str = "", **pod: Any) -> dict[str, Any]:
    named_so = {"serviceAccountName": name} if name else {}
    spec = {"containers": [{"name": "main"}], **named_so, **pod}
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": spec}})


def an_account(name: str, **rest: Any) -> dict[str, Any]:
    return an_object("v1", "ServiceAccount", name, "shop", **rest)


def moved(old: dict[str, Any], new: dict[str, Any], *, roles: tuple[Any, ...] | None = (), **rest: Any) -> Finding:
    changed = planned(new, Action.UPDATE, before=old)
    (found,) = named(findings_of(credentials.ACCOUNTS_CHECK, changed, live_rbac=roles, **rest), "POD-32")
    return found


@pytest.mark.parametrize(
    ("roles", "severity", "words"),
    [
        pytest.param(
            (READS_SECRETS, bound("secrets", account("b", "shop"))),
            Severity.CRITICAL,
            "and now can read every Secret (cluster-wide)",
            id="critical rights",
        ),
        pytest.param(
            (STARTS_CODE, bound("starts-code", account("b", "shop"))),
            Severity.DANGEROUS,
            "and now can start code in others' pods",
            id="dangerous rights",
        ),
        pytest.param(
            (READS_PODS, bound("pods", account("b", "shop"))),
            Severity.NOTABLE,
            "and may do more: get pods",
            id="rights",
        ),
        pytest.param(
            (READS_SECRETS, bound("secrets", account("a", "shop"), account("b", "shop"))),
            Severity.NOTABLE,
            "and may do nothing more",
            id="the same rights",
        ),
        pytest.param((), Severity.NOTABLE, "and may do nothing more", id="none"),
        pytest.param(None, Severity.UNKNOWN, "roles and bindings of the cluster could not be read", id="not read"),
    ],
)
def test_another_account_is_judged_by_what_it_may_do_more(
    roles: tuple[Any, ...] | None, severity: Severity, words: str
) -> None:
    found = moved(runs_as("a"), runs_as("b"), roles=roles)
    assert (found.severity, words in found.message) == (severity, True)
    assert found.message.startswith("Deployment shop/web runs as the account b instead of a")


def test_the_older_name_of_the_field_and_no_name_at_all_count_as_what_they_mean() -> None:
    assert "instead of default" in moved(runs_as(), runs_as("b")).message
    assert "the account default instead of b" in moved(runs_as("b"), runs_as()).message
    old, new = runs_as(serviceAccount="a"), runs_as("a", serviceAccount="a")
    assert not named(findings_of(credentials.ACCOUNTS_CHECK, planned(new, Action.UPDATE, before=old)), "POD-32")


def test_offline_what_the_bundle_grants_is_compared() -> None:
    roles = (READS_SECRETS, bound("secrets", account("b", "shop")), an_account("b"))
    content = content_with(runs_as("b"), *roles)
    found = moved(runs_as("a"), runs_as("b"), roles=None, content=content, is_offline=True)
    assert found.severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("more", "count"),
    [pytest.param((), 1, id="of somebody else"), pytest.param((an_account("b"),), 0, id="of the bundle")],
)
def test_a_new_object_that_runs_as_a_strong_account_of_somebody_else_is_told(more: tuple[Any, ...], count: int) -> None:
    roles = (READS_SECRETS, bound("secrets", account("b", "shop")))
    actions = [planned(one, Action.CREATE) for one in (runs_as("b"), *more)]
    found = named(findings_of(credentials.ACCOUNTS_CHECK, *actions, live_rbac=roles), "POD-32")
    assert [finding.severity for finding in found] == [Severity.CRITICAL] * count


def test_a_new_object_whose_account_may_do_little_is_not_told() -> None:
    assert not named(
        findings_of(credentials.ACCOUNTS_CHECK, planned(runs_as("b"), Action.CREATE), live_rbac=()), "POD-32"
    )


EVERYBODYS = ("basic-user", "discovery", "public-info-viewer", "service-account-issuer-discovery")


@pytest.mark.parametrize("name", [f"system:{name}" for name in EVERYBODYS])
def test_what_every_account_of_a_new_cluster_holds_is_no_gain(name: str) -> None:
    urls = rule("get", urls="/openid/v1/jwks /version/")
    roles = (cluster_role(name, urls), bound(name, group("system:authenticated"), group("system:serviceaccounts")))
    created = planned(runs_as(), Action.CREATE)
    assert not named(findings_of(credentials.ACCOUNTS_CHECK, created, live_rbac=roles), "POD-32")
    written = (cluster_role(name, rule("get", "secrets")), *roles[1:])
    (found,) = named(findings_of(credentials.ACCOUNTS_CHECK, created, live_rbac=written), "POD-32")
    assert found.severity is Severity.CRITICAL


def test_S09_who_may_not_get_roles_reads_which_object_runs_as_which_account() -> None:
    """The headline goes into the mirror of the request, where everybody reads it."""
    action = planned(runs_as("x" * 63), Action.CREATE)
    roles = (STARTS_CODE, bound("starts-code", account("x" * 63, "shop")))
    told = report(facts(action, live_rbac=roles, bundle=Plan((action,), "")), [credentials.ACCOUNTS_CHECK])
    (found,) = named(list(told.findings), "POD-32")
    stated = f"Deployment shop/web is new and runs as the account {'x' * 63}, which is not of this bundle"
    assert told.headline[0].startswith(stated)
    assert "start code" not in f"{told.headline} {found.message}"
    assert "start code" in found.server_words


AUTOMOUNT = "automountServiceAccountToken"


def mounted(old: dict[str, Any], new: dict[str, Any], *beside: dict[str, Any], roles: Any = ()) -> list[Finding]:
    changed = [planned(new, Action.UPDATE, before=old), *(planned(one, Action.NONE, before=one) for one in beside)]
    previous = content_with(old, *beside)
    return named(findings_of(credentials.TOKENS_CHECK, *changed, previous=previous, live_rbac=roles), "POD-33")


@pytest.mark.parametrize(
    ("old", "new", "by_account", "count"),
    [
        pytest.param(False, True, None, 1, id="off, on"),
        pytest.param(False, None, None, 1, id="off, left open"),
        pytest.param(False, None, False, 0, id="left open to an account that says no"),
        pytest.param(None, True, False, 1, id="on against the account"),
        pytest.param(None, True, None, 0, id="said that was so"),
        pytest.param(True, False, None, 0, id="on, off"),
    ],
)
def test_a_token_that_pods_did_not_have_is_told(
    old: bool | None, new: bool | None, by_account: bool | None, count: int
) -> None:
    before, after = (runs_as("a", **({AUTOMOUNT: it} if it is not None else {})) for it in (old, new))
    own = an_account("a", **({AUTOMOUNT: by_account} if by_account is not None else {}))
    assert len(mounted(before, after, own)) == count


def test_a_token_of_a_strong_account_is_dangerous() -> None:
    roles = (READS_SECRETS, bound("secrets", account("a", "shop")))
    (found,) = mounted(runs_as("a", **{AUTOMOUNT: False}), runs_as("a"), roles=roles)
    assert found.severity is Severity.DANGEROUS
    assert "read every Secret" in found.message


def test_an_account_that_newly_gives_its_token_to_all_pods_is_told() -> None:
    old, new = an_account("a", **{AUTOMOUNT: False}), an_account("a")
    (found,) = named(findings_of(credentials.TOKENS_CHECK, planned(new, Action.UPDATE, before=old)), "POD-33")
    assert found.severity is Severity.NOTABLE
    assert not named(findings_of(credentials.TOKENS_CHECK, planned(old, Action.UPDATE, before=new)), "POD-33")


@pytest.mark.parametrize(
    ("token", "words"),
    [
        pytest.param({"path": "t", "audience": "vault"}, "for vault", id="an audience"),
        pytest.param({"path": "t"}, "for the API server", id="none"),
        pytest.param(
            {"path": "t", "audience": "vault", "expirationSeconds": 86400}, "for vault, valid for 24 hours", id="a day"
        ),
    ],
)
def test_a_token_that_pods_ask_for_is_told_with_its_audience(token: dict[str, Any], words: str) -> None:
    volumes = [{"name": "t", "projected": {"sources": [{"serviceAccountToken": token}]}}]
    (found,) = named(
        findings_of(credentials.TOKENS_CHECK, planned(runs_as("a", volumes=volumes), Action.CREATE)), "POD-33"
    )
    assert found.message == f"Deployment shop/web holds a token of its account a {words}"
    by_server = [{**volumes[0], "name": "kube-api-access-x7x2k"}]
    assert not named(
        findings_of(credentials.TOKENS_CHECK, planned(runs_as("a", volumes=by_server), Action.CREATE)), "POD-33"
    )


found_by = partial(findings_of, credentials.CONFIGURATION_CHECK)


@pytest.mark.parametrize(
    ("key", "value", "count"),
    [
        pytest.param("password", "Pl4nted", 1, id="password"),
        pytest.param("DB_PASSWORD", "Pl4nted", 1, id="inside a name"),
        pytest.param("api-key", "Pl4nted", 1, id="key"),
        pytest.param("password", "", 0, id="empty"),
        pytest.param("password", "/etc/pw/file", 0, id="a path"),
        pytest.param("token", "true", 0, id="a switch"),
        pytest.param("ALLOW_EMPTY_PASSWORD", "no", 0, id="a switch of bitnami's images"),
        pytest.param("token", "$(TOKEN)", 0, id="a reference"),
        pytest.param("passwordPolicy", "strict", 0, id="another word"),
    ],
)
def test_what_is_named_like_a_credential_is_said_without_its_value(key: str, value: str, count: int) -> None:
    in_map = found_by(planned(config_map(**{key: value}), Action.CREATE))
    in_pod = found_by(planned(web_workload(env=[{"name": key, "value": value}]), Action.CREATE))
    assert [len(named(found, "SEC-02")) for found in (in_map, in_pod)] == [count, count]
    assert "Pl4nted" not in str(in_map + in_pod)


@pytest.mark.parametrize(
    ("before", "count"),
    [
        pytest.param({**config_map(a="1"), "immutable": True}, 1, id="immutable"),
        pytest.param(config_map(a="1"), 0, id="plain"),
        pytest.param({**config_map(a="2"), "immutable": True, "metadata": {"name": "settings"}}, 0, id="same data"),
    ],
)
def test_an_immutable_map_cannot_change(before: dict[str, Any], count: int) -> None:
    after = {**config_map(a="2"), "immutable": True} if count == 0 and before.get("immutable") else config_map(a="2")
    assert len(named(found_by(planned(after, Action.REPLACE, before=before)), "SEC-03")) == count


@pytest.mark.parametrize(
    ("pods_too", "count"),
    [pytest.param(False, 1, id="the pods stay"), pytest.param(True, 0, id="the pods change as well")],
)
def test_changed_configuration_reaches_only_pods_that_start_anew(pods_too: bool, count: int) -> None:
    old = web_workload(env=[reading("ConfigMap", "settings", "a")])
    new = web_workload(env=[reading("ConfigMap", "settings", "a")], hostname="new") if pods_too else old
    changed = planned(config_map(a="2"), Action.UPDATE, before=config_map(a="1"))
    found = found_by(changed, planned(new, Action.UPDATE if pods_too else Action.NONE, before=old))
    assert len(named(found, "SEC-05")) == count


def test_a_token_that_never_ends_is_said() -> None:
    secret = an_object("v1", "Secret", "token", "shop", type="kubernetes.io/service-account-token")
    assert named(found_by(planned(secret, Action.CREATE)), "SEC-06")
