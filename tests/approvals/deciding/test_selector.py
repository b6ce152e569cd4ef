"""Which requests a selector is about: every part that is given has to fit."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.deciding.selector import SelectedBy, Selector
from approvals.deciding.spec_fields import SpecFields, UnreadableObject

REQUEST = SelectedBy(
    "payments-api",
    labels=({"team": "payments", "tier": "1"}, {"team": "old"}),
    format="helm",
    hosts=("ghcr.io", "git.example.com"),
    packages=("strimzi",),
    worst_new="dangerous",
)


def selector(**spec: Any) -> Selector:
    return Selector.read(SpecFields(spec, "spec.selector"))


@pytest.mark.parametrize(
    ("spec", "is_selected"),
    [
        ({}, True),
        ({"names": ["payments-*"]}, True),
        ({"names": ["Payments-*", "web"]}, False),
        ({"matchLabels": {"team": "payments"}}, True),
        ({"matchLabels": {"team": "payments", "tier": "2"}}, False),
        # What it was labelled earlier counts as well (S14), but no mixture of both.
        ({"matchLabels": {"team": "old"}}, True),
        ({"matchLabels": {"team": "old", "tier": "1"}}, False),
        ({"formats": ["plain", "helm"]}, True),
        ({"formats": ["plain"]}, False),
        ({"sourceHosts": ["*.example.com"]}, True),
        ({"sourceHosts": ["example.com"]}, False),
        ({"packages": ["strimzi"]}, True),
        ({"packages": ["stri"]}, False),
        ({"minSeverity": "dangerous"}, True),
        ({"minSeverity": "notable"}, True),
        ({"minSeverity": "unknown"}, False),
        ({"names": ["payments-*"], "formats": ["plain"]}, False),
    ],
)
def test_all_parts_that_are_given_have_to_fit(spec: dict[str, Any], is_selected: bool) -> None:
    assert selector(**spec).selects(REQUEST) is is_selected


def test_S14_what_lets_pass_has_to_fit_every_set_of_labels() -> None:
    by_team = selector(matchLabels={"team": "payments"})
    assert not by_team.selects(REQUEST, by_every_label_set=True)
    forgotten = SelectedBy("x", labels=({},), are_labels_kept=False)
    assert by_team.selects(forgotten)
    assert not by_team.selects(forgotten, by_every_label_set=True)


def test_what_holds_selects_by_what_runs_as_well() -> None:
    now_plain = SelectedBy("x", format="plain", format_before="helm")
    assert selector(formats=["helm"]).selects(now_plain)
    assert not selector(formats=["helm"]).selects(now_plain, by_every_label_set=True)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"names": "all"}, "spec.selector.names is 'all'; expected a list of at most 50 texts"),
        ({"names": ["a"] * 51}, "expected a list of at most 50 texts"),
        ({"names": [""]}, "expected a text of 1 to 253 characters"),
        ({"matchLabels": {"team": 1}}, "expected at most 50 labels"),
        ({"minSeverity": "worst"}, "is 'worst'; expected one of critical, breaking, unknown"),
        ({"matchExpressions": []}, "has the field 'matchExpressions', which this version of Pratique does not know"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(UnreadableObject, match="spec.selector") as refused:
        selector(**spec)
    assert words in str(refused.value)


def test_it_says_what_it_selects() -> None:
    assert selector().words == "every deployment"
    assert selector(names=["a", "b-*"], matchLabels={"team": "x"}, minSeverity="unknown").words == (
        "a, b-*, team=x, unknown or worse"
    )
