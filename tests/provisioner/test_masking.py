"""Values that nobody should be shown, in two states of a plain object: hidden, and still seen to change."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.masking import masked_states

CHANGED = "hidden (hidden values changed)"
URL = "postgres://app:{}@db/shop"


def env(name: str, value: str) -> dict[str, Any]:
    return {"env": [{"name": name, "value": value}]}


@pytest.mark.parametrize(
    ("before", "after", "shown_before", "shown_after"),
    [
        pytest.param(env("PASSWORD", "old"), env("PASSWORD", "new"), env("PASSWORD", "hidden"), env("PASSWORD", CHANGED), id="variable"),
        pytest.param(env("PASSWORD", "old"), env("PASSWORD", "old"), env("PASSWORD", "hidden"), env("PASSWORD", "hidden"), id="same"),
        pytest.param({}, env("PASSWORD", "new"), {}, env("PASSWORD", "hidden"), id="new variable"),
        pytest.param(env("MODE", "old"), env("MODE", "new"), env("MODE", "old"), env("MODE", "new"), id="plain"),
        pytest.param(
            {"args": ["--token", "old", "--db=" + URL.format("old")]},
            {"args": ["--token", "new", "--db=" + URL.format("old")]},
            {"args": ["--token", "hidden", "--db=" + URL.format("hidden")]},
            {"args": ["--token", CHANGED, "--db=" + URL.format("hidden")]},
            id="arguments",
        ),
        pytest.param(
            {"data": {"kubeconfig": "user: ada\nclient-key-data: b2xk\n"}},
            {"data": {"kubeconfig": "user: ada\nclient-key-data: bmV3\n"}},
            {"data": {"kubeconfig": "user: ada\nclient-key-data: hidden\n"}},
            {"data": {"kubeconfig": "user: ada\nclient-key-data: hidden\n(hidden values changed)"}},
            id="kubeconfig in a ConfigMap",
        ),
    ],
)  # fmt: skip
def test_what_is_named_or_written_like_a_credential_is_hidden(
    before: Any, after: Any, shown_before: Any, shown_after: Any
) -> None:
    assert masked_states(before, after) == (shown_before, shown_after)


def test_values_that_two_variables_exchange_are_seen_to_change() -> None:
    before = {"env": [{"name": "A_TOKEN", "value": "x"}, {"name": "B_TOKEN", "value": "y"}]}
    after = {"env": [{"name": "A_TOKEN", "value": "y"}, {"name": "B_TOKEN", "value": "x"}]}
    assert [one["value"] for one in masked_states(before, after)[1]["env"]] == [CHANGED, CHANGED]


def test_an_object_that_is_missing_stays_missing() -> None:
    assert masked_states(None, {"data": {"password": "x"}}) == (None, {"data": {"password": "hidden"}})
