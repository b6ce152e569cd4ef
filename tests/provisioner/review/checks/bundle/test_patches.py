"""What the report says of changes by `spec.config`: by object, by entry, and of what hit nothing."""

from __future__ import annotations

from dataclasses import replace

from provisioner.review.checks.bundle import patches
from provisioner.values import Action, Finding, ObjectRef, PatchedObject, PatchResult, Severity
from tests.support.provisioner.contents import config_map, content_with, facts, judged_by, planned

MAP = ObjectRef("", "v1", "ConfigMap", "shop", "a")
CHANGED = PatchResult("patches[0]", 1, (PatchedObject(MAP, ("data.a", "data.b")),))
DELETED = PatchResult("patches[0]", 1, (PatchedObject(MAP, (), is_deleted=True),))
LABELS = PatchResult("commonLabels", 40, (PatchedObject(MAP, ("metadata.labels",)),) * 3)
NOTHING = PatchResult("images[1]", 0, ())


def found_patches(*now: PatchResult, before: tuple[PatchResult, ...] = ()) -> list[tuple[str, Severity, bool]]:
    made = facts(planned(config_map(), Action.CREATE))
    previous = replace(content_with(config_map()), patches=before)
    told = replace(made, content=replace(made.content, patches=now), previous=previous)
    findings: list[Finding] = list(judged_by(told, [patches.PATCHES_CHECK]))
    assert {finding.rule for finding in findings} <= {"PATCH-01"}
    return [(finding.message, finding.severity, finding.is_new) for finding in findings]


def test_each_entry_says_what_it_changed() -> None:
    assert sorted(found_patches(CHANGED, LABELS, NOTHING)) == [
        (
            (
                "Patched here: `spec.config.commonLabels` changes 40 objects: ConfigMap shop/a, ConfigMap shop/a, ConfigMap"
                " shop/a and 37 more"
            ),
            Severity.NOTABLE,
            True,
        ),
        (
            "Patched here: `spec.config.patches[0]` changes ConfigMap shop/a: `data.a`, `data.b`",
            Severity.NOTABLE,
            True,
        ),
        ("`spec.config.images[1]` hits nothing: the bundle has no object that it is for", Severity.DANGEROUS, True),
    ]
    ((message, *_),) = found_patches(DELETED)
    assert message == "Patched here: `spec.config.patches[0]` leaves out ConfigMap shop/a, which the bundle brings"


def test_a_patch_that_hits_nothing_names_what_it_may_be_meant_for() -> None:
    ((message, *_),) = found_patches(PatchResult("patches[0]", 0, (), ("Deployment web", "Deployment wen")))
    assert message.endswith("has no object that it is for; it may be meant for Deployment web, Deployment wen")


def test_what_the_content_before_had_is_not_new() -> None:
    every = (CHANGED, LABELS, NOTHING)
    assert [is_new for *_, is_new in found_patches(*every, before=every)] == [False] * 3
    assert [is_new for *_, is_new in found_patches(DELETED, before=(CHANGED,))] == [True]
