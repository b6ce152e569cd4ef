"""Values and hooks of charts, and what they looked up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.render.helm import values
from provisioner.review.base.facts import Check, Facts
from provisioner.review.checks.bundle import content
from provisioner.review.checks.objects import objects
from provisioner.review.frame import report
from provisioner.values import Action, Finding, Hook, HookMoment, Lookup, Manifest, ObjectRef, Plan, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, judged_by, planned


def found_values(
    before: Mapping[str, str] | None,
    after: Mapping[str, str] | None,
    *,
    was_set: Iterable[str] = (),
    is_set: Iterable[str] = (),
) -> list[Finding]:
    made = facts(planned(config_map(), Action.CREATE))
    previous = replace(content_with(config_map()), values=before, spec_values=frozenset(was_set))
    made = replace(made, content=replace(made.content, values=after, spec_values=frozenset(is_set)), previous=previous)
    return [finding for finding in judged_by(made, [content.CHART_VALUES_CHECK]) if finding.rule == "VAL-01"]


def test_values_that_changed_came_and_went_are_told() -> None:
    (told,) = found_values(
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
    (told,) = found_values(before, after, was_set=["zone"], is_set=["replicas", "args"])
    assert told.message.startswith(
        "7 values of the chart changed, 4 of them by the spec: `args` is new, []; `args.fast` is gone, was true; "
    )
    places = [one["path"] for one in told.evidence["values"]]
    assert places == ["args", "args.fast", "replicas", "zone", "image", "no", "zones"]
    (unknown,) = found_values(before, after)
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
    (told,) = found_values({"list": before}, {"list": after})
    assert told.message == f"1 value of the chart changed: `list` {words}"


def test_a_long_value_that_changes_at_its_end_is_told_unless_nobody_knows() -> None:
    before, after = "abc… (300 characters)", "abc… (301 characters)"
    (told,) = found_values({"long": before}, {"long": after})
    assert told.message.endswith(f"`long` was {before}, is {after}")
    assert found_values({"long": "abc…"}, {"long": after}) == [], "an earlier version did not keep how long it was"


@pytest.mark.parametrize(
    ("before", "after"),
    [({"a": "1"}, {"a": "1"}), (None, {"a": "1"}), ({"a": "1"}, None)],
    ids=["the same", "nobody knows what was", "another format"],
)
def test_nothing_is_told_without_two_sides_that_differ(
    before: Mapping[str, str] | None, after: Mapping[str, str] | None
) -> None:
    assert found_values(before, after) == []


def test_hundreds_of_changes_are_one_finding() -> None:
    (told,) = found_values(
        {f"a{number:03}": "1" for number in range(500)}, {f"a{number:03}": "2" for number in range(500)}
    )
    assert told.message.startswith("500 values of the chart changed: `a000` was 1, is 2; ")
    assert told.message.endswith("and 497 more")
    assert (len(told.evidence["values"]), told.evidence["left_out"]) == (200, 300)


def test_as_many_are_taken_for_all_as_a_chart_keeps() -> None:
    assert content.MAX_VALUES == values.MAX_VALUES


def test_of_more_than_are_kept_nobody_knows_what_came_or_went() -> None:
    kept = {f"a{number:05}": "1" for number in range(content.MAX_VALUES)}
    without = {path: text for path, text in kept.items() if path != "a00000"}
    assert found_values(kept, {**without, "b": "1"}) == []
    (told,) = found_values(kept, {**kept, "a00001": "2"})
    assert told.message.startswith("1 value of the chart changed: `a00001` was 1, is 2")


SLACK = "https://hooks.slack.com/services/T024BE7LD/B01ABCDEF/aB3dE5fG7hI9jK1lM3nO5pQ7"


def test_an_address_with_a_long_random_part_is_hidden_also_of_earlier_contents() -> None:
    (told,) = found_values(
        {"alerts.url": SLACK, "other": SLACK}, {"alerts.url": "https://example.com/alerts", "other": SLACK}
    )
    assert "aB3dE5fG7hI9jK1lM3nO5pQ7" not in told.message + str(told.evidence)
    assert "https://example.com/alerts" in told.message


def test_S09_everybody_is_told_which_values_changed_and_few_what_they_are() -> None:
    secrets = [an_object("v1", "Secret", name, "shop", data={"x": "eA=="}) for name in ("old", "new")]
    sides = [
        replace(content_with(config_map(), one), values={"pin": json.dumps(value), "size": size})
        for one, value, size in zip(secrets, ("4711", "4712"), "12", strict=True)
    ]
    made = Facts(sides[1], Plan((), "sha256:plan"), sides[0], bundle=Plan((), "sha256:plan"), deployment="shop")
    (told,) = (finding for finding in report(made).findings if finding.rule == "VAL-01")
    assert told.message == "2 values of the chart changed: `pin`, `size`"
    assert told.server_words == '2 values of the chart changed: `pin` was "4711", is "4712"; `size` was 1, is 2'
    assert told.is_withheld
    assert [str(one) for one in told.sources] == [
        "BundleDeployment.core.rukpak.io shop",
        "Secret shop/new",
        "Secret shop/old",
    ]
    other = replace(made, content=replace(sides[1], values={"pin": "4713", "size": "3"}))
    (again,) = (finding for finding in report(other).findings if finding.rule == "VAL-01")
    assert again.fingerprint == told.fingerprint, "nobody can try values on it"


BEFORE, AFTER, _, GOING, _ = HookMoment
JOB = an_object(
    "batch/v1",
    "Job",
    "migrate",
    "shop",
    spec={
        "template": {
            "spec": {
                "serviceAccountName": "strong",
                "initContainers": [{"name": "wait", "image": "example.com/wait:1"}],
                "containers": [{"name": "main", "image": "example.com/migrate:1", "args": ["--password=canary"]}],
            }
        }
    },
)


def with_hook(obj: dict[str, Any], action: Action, *moments: HookMoment, **hook: Any) -> Facts:
    made = facts(planned(obj, action))
    manifest = Manifest(obj, hook=Hook.at(moments or (BEFORE,), **hook))
    return replace(made, content=replace(made.content, manifests=(manifest,)))


def told(found: Facts, rule: str) -> list[Finding]:
    return [
        finding for finding in judged_by(found, [content.HOOKS_CHECK, objects.OBJECTS_CHECK]) if finding.rule == rule
    ]


def test_what_a_job_runs_and_as_whom() -> None:
    found = with_hook(JOB, Action.CREATE, is_cleared=True)
    (finding,) = told(found, "HOOK-01")
    assert finding.severity is Severity.NOTABLE
    assert finding.message == (
        "A hook runs Job shop/migrate before other objects are written, as `strong` with example.com/wait:1, "
        "example.com/migrate:1. It is deleted once all hooks of that moment have succeeded"
    )
    assert "canary" not in str(finding.evidence)
    assert told(found, "OBJ-01") == [], "a hook is no object that is created to stay"


def test_a_hook_that_runs_nothing_is_safe() -> None:
    (finding,) = told(with_hook(config_map(), Action.CREATE, BEFORE, AFTER), "HOOK-01")
    assert finding.severity is Severity.SAFE
    assert "before other objects are written and after all objects are written" in finding.message


def test_a_hook_that_holds_data_and_is_cleared_is_dangerous() -> None:
    claim = an_object("v1", "PersistentVolumeClaim", "data", "shop", spec={})
    (finding,) = told(with_hook(claim, Action.CREATE, is_cleared=True), "HOOK-01")
    assert finding.severity is Severity.DANGEROUS
    assert told(with_hook(claim, Action.CREATE), "HOOK-01")[0].severity is Severity.SAFE


def test_a_hook_that_could_not_be_tried_is_said() -> None:
    made = facts(planned(JOB, Action.CREATE, is_proved=False))
    made = replace(made, content=replace(made.content, manifests=(Manifest(JOB, hook=Hook.at([BEFORE])),)))
    assert {finding.rule for finding in judged_by(made, [content.HOOKS_CHECK, objects.OBJECTS_CHECK])} >= {
        "HOOK-01",
        "OBJ-04",
    }


def test_a_hook_that_runs_again() -> None:
    (finding,) = told(with_hook(JOB, Action.RERUN), "HOOK-01")
    assert "runs Job shop/migrate again, and deletes what its last run left," in finding.message


def test_a_hook_in_the_place_of_an_object_is_dangerous() -> None:
    (finding,) = told(with_hook(JOB, Action.REPLACE), "HOOK-01")
    assert finding.severity is Severity.DANGEROUS
    words = "What has this name now, and is not known to be this deployment's, is deleted first"
    assert finding.message.endswith(words)
    ours = with_hook(JOB, Action.REPLACE)
    ours = replace(ours, plan=replace(ours.plan, actions=(replace(ours.plan.actions[0], before=JOB),)))
    assert told(ours, "HOOK-01")[0].message.endswith("What has this name now is deleted first")


CLAIM = an_object("v1", "PersistentVolumeClaim", "data", "shop", spec={"accessModes": ["ReadWriteOnce"]})


@pytest.mark.parametrize(
    ("obj", "was_hook", "severity", "words"),
    [
        pytest.param(CLAIM, False, Severity.BREAKING, "is deleted first, and its data may go with it", id="a claim"),
        pytest.param(
            CLAIM, True, Severity.BREAKING, "and its data may go with it", id="a claim that was a hook before"
        ),
        pytest.param(
            an_object("apps/v1", "StatefulSet", "db", "shop", spec={"template": {"spec": {"containers": []}}}),
            False,
            Severity.BREAKING,
            "and its pods stop, and its volumes are left behind",
            id="a stateful set",
        ),
        pytest.param(config_map(), False, Severity.DANGEROUS, "is deleted first", id="a ConfigMap"),
        pytest.param(config_map(), True, Severity.SAFE, "before other objects are written", id="a hook's ConfigMap"),
    ],
)
def test_offline_a_hook_takes_the_place_of_what_was_there_as_on_a_cluster(
    obj: dict[str, Any], was_hook: bool, severity: Severity, words: str
) -> None:
    hook = Hook.at([BEFORE])
    before = replace(content_with(), manifests=(Manifest(obj, hook=hook if was_hook else None),))
    found = look_offline(replace(before, manifests=(Manifest(obj, hook=hook),)), before)
    (finding,) = [finding for finding in found.findings if finding.rule == "HOOK-01"]
    assert (finding.severity, finding.is_new) == (severity, not was_hook)
    assert finding.message.endswith(words)


@pytest.mark.parametrize(("hook", "is_new"), [(Hook.at([BEFORE]), False), (Hook.at([AFTER]), True)])
def test_a_hook_is_new_unless_it_ran_like_this_before(hook: Hook, *, is_new: bool) -> None:
    found = with_hook(JOB, Action.RERUN)
    before = replace(content_with(), manifests=(Manifest(JOB, hook=hook),))
    (finding,) = told(replace(found, previous=before), "HOOK-01")
    assert finding.is_new is is_new


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (GOING, "When the deployment is deleted, a hook runs Job shop/migrate before the objects are deleted"),
        (BEFORE, "This request does not run the hook Job shop/migrate: going back runs none"),
    ],
)
def test_what_does_not_run_now(moment: HookMoment, words: str) -> None:
    made = facts(planned(config_map(), Action.CREATE))
    later = Manifest(JOB, hook=Hook.at([moment]))
    (finding,) = told(replace(made, content=replace(made.content, hooks=(later,))), "HOOK-02")
    assert (finding.severity, finding.message) == (Severity.NOTABLE, words)


def test_a_hook_that_stays_as_it_is_says_why() -> None:
    made = with_hook(JOB, Action.NONE)
    made = replace(made, plan=replace(made.plan, actions=(replace(made.plan.actions[0], notes=("it is kept",)),)))
    assert told(made, "HOOK-02")[0].message == "The hook Job shop/migrate is not run again: it is kept"


def test_what_hooks_left_is_listed_when_the_deployment_goes() -> None:
    left = tuple(ObjectRef("", "v1", "Secret", "shop", f"s{number}") for number in range(5))
    (finding,) = told(replace(facts(planned(config_map(), Action.DELETE)), left_by_hooks=left), "HOOK-03")
    assert "Secret shop/s0, Secret shop/s1, Secret shop/s2 and 2 more. Delete it yourself" in finding.message
    assert len(finding.evidence["objects"]) == 5


def unjudged_fields_of(found: Facts, *checks: Check) -> list[str]:
    told = report(found, checks).findings
    return [field for one in told if one.rule == "UNJUDGED" for field in one.evidence["fields"]]


def test_what_makes_an_object_a_hook_is_judged_of_hooks_alone() -> None:
    keys = ("helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy")
    obj = config_map()
    obj["metadata"]["annotations"] = {**dict.fromkeys(keys, "1"), "example.com/other": "1"}
    as_hook = with_hook(obj, Action.CREATE)
    everything = [f"metadata.annotations.[{key}]" for key in ("example.com/other", *keys)]
    assert set(everything) & set(unjudged_fields_of(as_hook, content.HOOKS_CHECK)) == {everything[0]}
    assert set(everything) <= set(unjudged_fields_of(facts(planned(obj, Action.CREATE)), content.HOOKS_CHECK))
    assert set(everything) <= set(unjudged_fields_of(as_hook, objects.OBJECTS_CHECK)), (
        "nothing is judged by a check that is out"
    )


SECRET = ObjectRef("", "v1", "Secret", "apps", "db")
DIGEST = "sha256:1"


def found_lookups(*now: Lookup, before: tuple[Lookup, ...] = ()) -> list[Finding]:
    made = facts(planned(config_map(), Action.CREATE))
    previous = replace(content_with(config_map()), lookups=before)
    told = replace(made.content, lookups=now, install_namespace="apps")
    return list(judged_by(replace(made, content=told, previous=previous), [content.LOOKUPS_CHECK]))


@pytest.mark.parametrize(
    ("lookup", "severity", "words"),
    [
        (Lookup(SECRET, ""), Severity.NOTABLE, "does not exist in the cluster"),
        (Lookup(replace(SECRET, kind="ConfigMap"), DIGEST), Severity.NOTABLE, "told what ConfigMap apps/db is in the"),
        (Lookup(SECRET, DIGEST), Severity.NOTABLE, "none of its values is in the content"),
        (Lookup(SECRET, DIGEST, ("copy",)), Severity.NOTABLE, "values of it go into Secret copy of the content"),
        (Lookup(SECRET, DIGEST, ("apps/a", "b")), Severity.NOTABLE, "go into Secrets apps/a, b of the content"),
        (Lookup(SECRET, DIGEST, ("b", "web/a")), Severity.DANGEROUS, "web/a of the content, in another namespace"),
        (Lookup(replace(SECRET, namespace="web"), DIGEST, ("a",)), Severity.DANGEROUS, "in another namespace"),
    ],
)
def test_each_object_is_told_and_where_values_of_a_secret_go(lookup: Lookup, severity: Severity, words: str) -> None:
    (told,) = found_lookups(lookup)
    assert (told.rule, told.severity, told.is_new) == ("LKP-01", severity, True)
    assert words in told.message


def test_a_chart_that_compares_a_value_of_a_secret_is_named_with_the_line() -> None:
    lookup = Lookup(SECRET, DIGEST, compared=("auth.type in templates/a.yaml:3",))
    told, _ = found_lookups(lookup)
    assert (told.rule, told.severity, told.is_new) == ("LKP-02", Severity.UNKNOWN, True)
    assert "auth.type in templates/a.yaml:3" in told.message
    assert [told.is_new for told in found_lookups(lookup, before=(lookup,))] == [False, False]


def test_a_value_that_was_looked_up_is_not_called_one_of_the_bundle() -> None:
    secret = an_object("v1", "Secret", "copy", "shop", data={"url": "eA==", "own": "eQ=="})
    made = facts(planned(secret, Action.CREATE))
    looked_up = Lookup(SECRET, DIGEST, ("copy",), ("copy/url",))
    told = replace(made, content=replace(made.content, lookups=(looked_up,)))
    for given, keys in ((made, ["own", "url"]), (told, ["own"])):
        (found_lookups,) = [
            finding for finding in judged_by(given, [content.CONTENT_CHECK]) if finding.rule == "SEC-01"
        ]
        assert found_lookups.evidence["keys"] == keys


def test_what_was_told_before_is_not_new_and_another_answer_is() -> None:
    one = Lookup(SECRET, DIGEST, ("copy",))
    assert [told.is_new for told in found_lookups(one, before=(one,))] == [False]
    assert [told.is_new for told in found_lookups(one, before=(replace(one, digest="sha256:2"),))] == [True]


def test_S24_gos_sign_of_a_microsecond_pretends_as_a_name_alone() -> None:
    pattern, name = config_map(pattern="^([0-9]+(us|\u00b5s|ms))+$"), config_map(url="\u00b5s")
    found = {
        finding.rule
        for obj in (pattern, name)
        for finding in judged_by(facts(planned(obj, Action.CREATE)), [content.CONTENT_CHECK])
    }
    assert found == {"TXT-02"}
