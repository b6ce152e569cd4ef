"""What the report says of the Helm that rendered a chart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.checks.bundle import chart_engine
from provisioner.values import Action, Finding, ObjectRef, PlannedAction, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, judged_by, planned

RECORD = planned(an_object("v1", "Secret", "sh.helm.release.v1.shop.v12", "shop"), Action.DELETE)


def found_of(
    *actions: PlannedAction, now: str, before: str = "", helm_3_differs: tuple[ObjectRef, ...] | None = None
) -> list[Finding]:
    made = facts(*actions)
    previous = replace(content_with(config_map()), engine=before) if before else None
    told = replace(made, content=replace(made.content, engine=now, helm_3_differs=helm_3_differs), previous=previous)
    return list(judged_by(told, [chart_engine.CHART_ENGINE_CHECK]))


@pytest.mark.parametrize(
    ("before", "now", "severity"),
    [
        ("v4.2.3", "v3.22.0", Severity.NOTABLE),
        ("v4.2.3", "v4.3.0", Severity.SAFE),
        ("v4.2.3", "v4.2.3", None),
        ("", "v4.2.3", None),
        ("v4.2.3", "", None),
    ],
)
def test_HELM_02_another_engine_than_before_is_said(before: str, now: str, severity: Severity | None) -> None:
    found = found_of(planned(config_map(), Action.NONE), now=now, before=before)
    assert [one.severity for one in found] == ([severity] if severity else [])
    for one in found:
        assert one.message == f"The chart was rendered by Helm {now}; what runs was rendered by Helm {before}"


def adoption(before: dict[str, str], after: dict[str, str]) -> PlannedAction:
    marked = config_map("settings") | {"data": before}
    marked["metadata"] = {**marked["metadata"], "annotations": {"meta.helm.sh/release-name": "shop"}}
    made = planned(config_map("settings"), Action.ADOPT)
    return replace(made, before=marked, after=config_map("settings") | {"data": after})


@pytest.mark.parametrize(
    ("actions", "now", "is_said"),
    [
        ((adoption({"a": "1"}, {"a": "2"}), RECORD), "v4.2.3", True),
        ((adoption({"a": "1"}, {"a": "1"}), RECORD), "v4.2.3", False),
        ((adoption({"a": "1"}, {"a": "2"}), RECORD), "v3.22.0", False),
        ((adoption({"a": "1"}, {"a": "2"}),), "v4.2.3", False),
    ],
    ids=["changes", "marks alone", "Helm 3 rendered it", "no release"],
)
def test_HELM_02_a_release_that_changes_may_be_helm_3s(
    actions: tuple[PlannedAction, ...], now: str, is_said: bool
) -> None:
    found = found_of(*actions, now=now)
    assert bool(found) == is_said
    for one in found:
        assert "`config.helmVersion: 3` may leave it as it is: ConfigMap" in one.message


@pytest.mark.parametrize("name", ["settings", "another"])
def test_HELM_02_where_helm_3_was_asked_only_what_it_renders_otherwise_is_named(name: str) -> None:
    ref = replace(adoption({}, {}).ref, namespace="", name=name)
    found = found_of(adoption({"a": "1"}, {"a": "2"}), RECORD, now="v4.2.3", helm_3_differs=(ref,))
    assert [one.message.rpartition("release, ")[2] for one in found] == (
        ["set `config.helmVersion: 3`: ConfigMap shop/settings"] if name == "settings" else []
    )
