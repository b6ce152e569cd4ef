"""Which objects of a chart are hooks, and when they run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.errors import BadConfig
from provisioner.render import Target, content_digest, parse, serialise
from provisioner.values import Hook, HookMoment
from tests.support.provisioner.charts import chart, config_map, rendered, texts

pytestmark = pytest.mark.usefixtures("each_helm", "kept_engine")

BEFORE, AFTER, TESTING, GOING, GONE = HookMoment
INSTALL, UPGRADE = Target("", (), is_upgrade=False), Target("", (), is_upgrade=True)


@pytest.mark.parametrize(
    ("said", "installed", "upgraded"),
    [
        ("pre-install", (BEFORE,), ()),
        ("post-install", (AFTER,), ()),
        ("pre-upgrade", (), (BEFORE,)),
        ("post-upgrade", (), (AFTER,)),
        ("pre-install,pre-upgrade", (BEFORE,), (BEFORE,)),
        (" post-upgrade , Pre-Install ", (BEFORE,), (AFTER,)),
        ("pre-install,post-install,pre-upgrade,post-upgrade", (BEFORE, AFTER), (BEFORE, AFTER)),
        ("pre-delete", (GOING,), (GOING,)),
        ("post-delete,pre-delete", (GOING, GONE), (GOING, GONE)),
        ("test,post-install", (AFTER,), ()),
        ("crd-install", (), ()),
        ("", (), ()),
        (" , ", (), ()),
    ],
)
def test_hooks_run_at_the_moments_of_what_is_pinned(
    said: str, installed: tuple[HookMoment, ...], upgraded: tuple[HookMoment, ...]
) -> None:
    files = chart(templates__hook=config_map("1", "migrate", f"{{helm.sh/hook: '{said}'}}"))
    for target, expected in ((INSTALL, installed), (UPGRADE, upgraded)):
        found = rendered(files, target=target)
        assert texts(found) == {"shop-one": "own"}
        assert [(one.ref.name, one.hook) for one in found.hooks] == ([("migrate", Hook(expected))] if expected else [])


@pytest.mark.parametrize(
    ("text", "weight"), [("-5", -5), (" 12 ", 12), ("+3", 3), ("1.5", 0), ("many", 0), ("9" * 30, 0)]
)
def test_the_weight_of_a_hook(text: str, weight: int) -> None:
    hook = config_map("1", "migrate", f"{{helm.sh/hook: pre-install, helm.sh/hook-weight: '{text}'}}")
    (found,) = rendered(chart(templates__hook=hook)).hooks
    assert found.hook == Hook((BEFORE,), weight)


@pytest.mark.parametrize(
    ("policy", "is_cleared"),
    [("hook-succeeded", True), ("before-hook-creation,hook-succeeded", True), ("hook-failed", False), ("", False)],
)
def test_what_becomes_of_a_hook_that_succeeded(policy: str, *, is_cleared: bool) -> None:
    hook = config_map("1", "migrate", f"{{helm.sh/hook: pre-install, helm.sh/hook-delete-policy: '{policy}'}}")
    (found,) = rendered(chart(templates__hook=hook)).hooks
    assert found.hook == Hook((BEFORE,), is_cleared=is_cleared)


def test_when_a_hook_runs_is_a_part_of_the_digest() -> None:
    def digest(weight: int) -> str:
        files = chart(templates__hook=config_map("1", "migrate", "{helm.sh/hook: pre-install}"))
        content = rendered(files)
        hooks = tuple(replace(one, hook=Hook((BEFORE,), weight)) for one in content.hooks)
        return content_digest((*content.manifests, *hooks), install_namespace="shop", service_account="x")

    assert digest(1) != digest(2)
    assert digest(1) == digest(1)


def test_hooks_are_stored_and_read_as_they_are() -> None:
    annotations = "{helm.sh/hook: 'pre-install,post-delete', helm.sh/hook-weight: '-3'}"
    content = rendered(chart(templates__hook=config_map("1", "migrate", annotations)))
    stored = serialise(content.everything)
    assert parse(stored) == content.everything
    assert serialise(parse(stored)) == stored


@pytest.mark.parametrize("moment", ["test", "test-success", "pre-rollback"])
def test_tests_and_rollbacks_are_left_out_and_said(moment: str) -> None:
    hook = config_map("1", "migrate", f"{{helm.sh/hook: {moment}}}")
    found = rendered(chart(templates__hook=hook))
    assert texts(found) == {"shop-one": "own"}
    assert found.unused.paths == ("templates/hook.yaml",)


@pytest.mark.parametrize("moment", ["test", "test-success"])
def test_tests_run_where_the_config_asks_for_them(moment: str) -> None:
    files = chart(templates__hook=config_map("1", "migrate", f"{{helm.sh/hook: '{moment},pre-upgrade'}}"))
    for target, moments in ((INSTALL, (TESTING,)), (UPGRADE, (BEFORE, TESTING))):
        found = rendered(files, {"tests": True}, target=target)
        assert [one.hook for one in found.hooks] == [Hook(moments)]
        assert not found.unused.paths
    with pytest.raises(BadConfig, match=r"config\.tests is str; expected true or false"):
        rendered(files, {"tests": "yes"})
