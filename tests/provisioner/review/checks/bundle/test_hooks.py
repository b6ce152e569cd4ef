"""What a report says of the hooks of a chart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base.facts import Check, Facts
from provisioner.review.checks.bundle import content
from provisioner.review.checks.objects import objects
from provisioner.review.frame import report
from provisioner.values import Action, Finding, Hook, HookMoment, Manifest, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, judged_by, planned

BEFORE, AFTER, GOING, _ = HookMoment
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
    return [one for one in judged_by(found, [content.HOOKS_CHECK, objects.OBJECTS_CHECK]) if one.rule == rule]


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
    assert {one.rule for one in judged_by(made, [content.HOOKS_CHECK, objects.OBJECTS_CHECK])} >= {"HOOK-01", "OBJ-04"}


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
    (finding,) = [one for one in found.findings if one.rule == "HOOK-01"]
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
