"""Which values of a chart are told, and to whom."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from provisioner.render.helm import values
from provisioner.review.base.facts import Facts
from provisioner.review.checks.bundle import content
from provisioner.review.frame import report
from provisioner.values import Action, Finding, Plan, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, judged_by, planned


def found(
    before: Mapping[str, str] | None,
    after: Mapping[str, str] | None,
    *,
    was_set: Iterable[str] = (),
    is_set: Iterable[str] = (),
) -> list[Finding]:
    made = facts(planned(config_map(), Action.CREATE))
    previous = replace(content_with(config_map()), values=before, spec_values=frozenset(was_set))
    made = replace(made, content=replace(made.content, values=after, spec_values=frozenset(is_set)), previous=previous)
    return [one for one in judged_by(made, [content.CHART_VALUES_CHECK]) if one.rule == "VAL-01"]


def test_values_that_changed_came_and_went_are_told() -> None:
    (told,) = found(
        {"image.tag": '"1"', "replicas": "2", "old": "true"}, {"image.tag": '"2"', "replicas": "2", "new": "[]"}
    )
    assert (told.severity, told.is_new) == (Severity.NOTABLE, True)
    assert told.message == (
        '3 values of the chart changed: `image.tag` was "1", is "2"; `new` is new, []; `old` is gone, was true'
    )
    assert told.evidence["values"][0] == {"variant": "changed", "path": "image.tag", "before": '"1"', "after": '"2"'}


def test_what_the_spec_sets_or_set_before_comes_first() -> None:
    before = {"args.fast": "true", "image": '"1"', "no": "1", "replicas": "1", "zone": '"b"', "zones": "1"}
    after = {"args": "[]", "image": '"2"', "no": "2", "replicas": "3", "zone": '"a"', "zones": "2"}
    (told,) = found(before, after, was_set=["zone"], is_set=["replicas", "args"])
    assert told.message.startswith(
        "7 values of the chart changed, 4 of them by the spec: `args` is new, []; `args.fast` is gone, was true; "
    )
    places = [one["path"] for one in told.evidence["values"]]
    assert places == ["args", "args.fast", "replicas", "zone", "image", "no", "zones"]
    (unknown,) = found(before, after)
    assert unknown.fingerprint == told.fingerprint, "an approval of what was said in another order still counts"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('["a", "b"]', '["b", "c", "d"]', 'gains "c", "d" and loses "a"'),
        ('["a"]', '["a", "a"]', 'gains "a"'),
        ('["a", "b"]', '["b", "a"]', "has another order"),
        ('[{"b": 1, "a": 2}]', '[{"a": 3}]', 'gains {"a": 3} and loses {"a": 2, "b": 1}'),
        ("[]", '["a"]', 'was [], is ["a"]'),
        ('["a", "b… (300 characters)', '["a"]', 'was ["a", "b… (300 characters), is ["a"]'),
    ],
)
def test_of_lists_is_told_what_came_and_went(before: str, after: str, words: str) -> None:
    (told,) = found({"list": before}, {"list": after})
    assert told.message == f"1 value of the chart changed: `list` {words}"


def test_a_long_value_that_changes_at_its_end_is_told_unless_nobody_knows() -> None:
    before, after = "abc… (300 characters)", "abc… (301 characters)"
    (told,) = found({"long": before}, {"long": after})
    assert told.message.endswith(f"`long` was {before}, is {after}")
    assert found({"long": "abc…"}, {"long": after}) == [], "an earlier version did not keep how long it was"


@pytest.mark.parametrize(
    ("before", "after"),
    [({"a": "1"}, {"a": "1"}), (None, {"a": "1"}), ({"a": "1"}, None)],
    ids=["the same", "nobody knows what was", "another format"],
)
def test_nothing_is_told_without_two_sides_that_differ(
    before: Mapping[str, str] | None, after: Mapping[str, str] | None
) -> None:
    assert found(before, after) == []


def test_hundreds_of_changes_are_one_finding() -> None:
    (told,) = found({f"a{number:03}": "1" for number in range(500)}, {f"a{number:03}": "2" for number in range(500)})
    assert told.message.startswith("500 values of the chart changed: `a000` was 1, is 2; ")
    assert told.message.endswith("and 497 more")
    assert (len(told.evidence["values"]), told.evidence["left_out"]) == (200, 300)


def test_as_many_are_taken_for_all_as_a_chart_keeps() -> None:
    assert content.MAX_VALUES == values.MAX_VALUES


def test_of_more_than_are_kept_nobody_knows_what_came_or_went() -> None:
    kept = {f"a{number:05}": "1" for number in range(content.MAX_VALUES)}
    without = {path: text for path, text in kept.items() if path != "a00000"}
    assert found(kept, {**without, "b": "1"}) == []
    (told,) = found(kept, {**kept, "a00001": "2"})
    assert told.message.startswith("1 value of the chart changed: `a00001` was 1, is 2")


SLACK = "https://hooks.slack.com/services/T024BE7LD/B01ABCDEF/aB3dE5fG7hI9jK1lM3nO5pQ7"


def test_an_address_with_a_long_random_part_is_hidden_also_of_earlier_contents() -> None:
    (told,) = found({"alerts.url": SLACK, "other": SLACK}, {"alerts.url": "https://example.com/alerts", "other": SLACK})
    assert "aB3dE5fG7hI9jK1lM3nO5pQ7" not in told.message + str(told.evidence)
    assert "https://example.com/alerts" in told.message


def test_S09_everybody_is_told_which_values_changed_and_few_what_they_are() -> None:
    secrets = [an_object("v1", "Secret", name, "shop", data={"x": "eA=="}) for name in ("old", "new")]
    sides = [
        replace(content_with(config_map(), one), values={"pin": json.dumps(value), "size": size})
        for one, value, size in zip(secrets, ("4711", "4712"), "12", strict=True)
    ]
    made = Facts(sides[1], Plan((), "sha256:plan"), sides[0], bundle=Plan((), "sha256:plan"), deployment="shop")
    (told,) = (one for one in report(made).findings if one.rule == "VAL-01")
    assert told.message == "2 values of the chart changed: `pin`, `size`"
    assert told.server_words == '2 values of the chart changed: `pin` was "4711", is "4712"; `size` was 1, is 2'
    assert told.is_withheld
    assert [str(one) for one in told.sources] == [
        "BundleDeployment.core.rukpak.io shop",
        "Secret shop/new",
        "Secret shop/old",
    ]
    other = replace(made, content=replace(sides[1], values={"pin": "4713", "size": "3"}))
    (again,) = (one for one in report(other).findings if one.rule == "VAL-01")
    assert again.fingerprint == told.fingerprint, "nobody can try values on it"
