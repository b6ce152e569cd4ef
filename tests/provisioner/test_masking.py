"""Values that nobody should be shown, in two states of a plain object: hidden, and still seen to change."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.masking import masked, masked_states

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


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (
            "https://hooks.slack.com/services/T024BE7LD/B01ABCDEF/aB3dE5fG7hI9jK1lM3nO5pQ7",
            "https://hooks.slack.com/services/hidden/hidden/hidden",
        ),
        ("https://hooks.slack.com/services/T0/B0/abcdefGHIJKLmnop", "https://hooks.slack.com/services/T0/B0/hidden"),
        ("https://discord.com/api/webhooks/123456789012345678/a-B3dE5fG7hI9jK1lM3", "https://discord.com/api/webhooks/hidden/hidden"),
        ("see https://example.com/x?key=3f9aZ81kQpLm20xYtR77 now", "see https://example.com/x?key=hidden now"),
        ("https://o1.ingest.example.com/0a1b2c3d4e5f60718293a4b5c6d7e8f9/4505", "https://o1.ingest.example.com/hidden/4505"),
        ("https://example.com/x?sub_key=a1&x-sig=b2c&page=3", "https://example.com/x?sub_key=hidden&x-sig=hidden&page=3"),
        ("https://example.com/x?state=aB3d_E5fG-7hI9_jK1lM-3nO", "https://example.com/x?state=hidden"),
        ("https://ghp1aB2cD3@example.com/x.git", "https://hidden@example.com/x.git"),
        ("https://aaaabbbbccccddddeeee:x-oauth-basic@example.com/x", "https://hidden:hidden@example.com/x"),
        ("https://deployer@example.com:8443/x", "https://deployer@example.com:8443/x"),
        ("https://example123.example.com:8443/@x", "https://example123.example.com:8443/@x"),
        ("https://example.com/webhook/validate-pods", "https://example.com/webhook/validate-pods"),
        (f"https://example.com/{'0a' * 20}/install.yaml", f"https://example.com/{'0a' * 20}/install.yaml"),
        ("https://example.com/kube-prometheus-stack-77.0.1/values", "https://example.com/kube-prometheus-stack-77.0.1/values"),
        ("https://a3sGf0pQ9xK2mN7vB4cD8eF1.example.com/x", "https://a3sGf0pQ9xK2mN7vB4cD8eF1.example.com/x"),
    ],
)  # fmt: skip
def test_S09_the_key_in_an_address_is_hidden_and_commits_are_not(address: str, shown: str) -> None:
    assert masked(address) == shown


@pytest.mark.parametrize("way", ["x/" + "a" * 400_000, "hook/" + "a" * 400_000])
def test_S26_one_long_address_costs_no_more_than_its_length(way: str) -> None:
    """Each character is looked at once: by the square of it, this would take half an hour."""
    assert masked(f"https://{way}") == f"https://{way}"
