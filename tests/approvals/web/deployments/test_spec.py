"""What a deployment's page shows of its spec beyond single fields: the format, its config and rarer fields."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import BundleDeployment
from approvals.web.deployments.spec_form import folded_yaml
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import opened


def test_credentials_in_the_config_are_hidden() -> None:
    config = {
        "values": {"admin": {"password": "correct horse"}, "url": "https://ada:battery@example.com", "replicas": 3}
    }
    (shown,) = folded_yaml({"config": config})
    assert (shown.title, shown.is_short) == ("Config", True)
    for secret in ("correct horse", "battery"):
        assert secret not in shown.text
    assert "replicas: 3" in shown.text


def test_fields_with_a_line_of_their_own_are_not_said_twice() -> None:
    spec = {**world.spec(), "drift": "Report", "revisionHistoryLimit": 3}
    (shown,) = folded_yaml(spec)
    assert (shown.title, shown.text) == ("Other fields", "revisionHistoryLimit: 3\n")


@pytest.mark.parametrize(("lines", "is_open"), [(3, True), (40, False)])
def test_the_page_shows_the_format_and_folds_a_long_config(
    here: World, browse: Callable[[User], Client], lines: int, is_open: bool
) -> None:
    config = {"values": {f"key-{number:02}": "<b>" for number in range(lines)}}
    wish = world.spec(format="helm", config=config)
    world.wish(here.cluster, world.seen("strimzi", wish), by=here.rita)
    shown = " ".join(opened(browse(here.ada), f"/deployments/prod/{BundleDeployment.objects.get().name}").split())
    assert '<dt>Format</dt> <dd class="mono"> helm </dd>' in shown
    assert "key-00: &lt;b&gt;" in shown
    assert ("<details open> <summary>Config</summary>" in shown) is is_open
