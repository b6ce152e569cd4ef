"""Configuration and secrets: missing, immutable, in plain sight, or changed behind the back of running pods."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from provisioner.review.checks.pods import credentials
from provisioner.values import Action
from tests.support.provisioner.contents import (
    an_object,
    config_map,
    findings_of,
    named,
    planned,
    reading,
    web_workload,
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
