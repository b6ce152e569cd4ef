"""Data that goes with its object from now on."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.objects import deletions
from provisioner.values import Action, Severity
from tests.support.provisioner.contents import an_object, findings_of, named, planned


def stateful_set(**policy: str) -> dict[str, Any]:
    spec = {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}
    return an_object("apps/v1", "StatefulSet", "db", "shop", spec=spec)


def volume(policy: str = "") -> dict[str, Any]:
    spec = {"persistentVolumeReclaimPolicy": policy} if policy else {}
    return an_object("v1", "PersistentVolume", "data", spec=spec)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (stateful_set(), stateful_set(whenDeleted="Delete"), [("dangerous", "deleted when it is deleted, with")]),
        (stateful_set(), stateful_set(whenScaled="Delete"), [("dangerous", "deleted when it runs fewer pods, with")]),
        (stateful_set(whenDeleted="Delete"), stateful_set(), [("notable", "claims stay when it is deleted")]),
        (stateful_set(), stateful_set(whenDeleted="Retain", whenScaled="Retain"), []),
        (None, stateful_set(whenDeleted="Delete"), [("notable", "deleted when it is deleted")]),
        (None, stateful_set(), []),
        (volume("Retain"), volume("Delete"), [("dangerous", "its data is deleted as soon as its claim is")]),
        (volume(), volume("Recycle"), [("dangerous", "its data is deleted")]),
        (volume("Delete"), volume("Retain"), [("notable", "its data stays")]),
        (None, volume("Delete"), [("notable", "its data is deleted")]),
    ],
    ids=str,
)
def test_what_becomes_of_data_from_now_on_is_told(
    before: dict[str, Any] | None, after: dict[str, Any], told: list[tuple[str, str]]
) -> None:
    action = planned(after, Action.UPDATE, before=before) if before else planned(after, Action.CREATE)
    found = named(findings_of(deletions.DATA_POLICIES_CHECK, action), "DEL-03")
    assert [finding.severity for finding in found] == [Severity(severity) for severity, _ in told]
    assert all(words in one.message for one, (_, words) in zip(found, told, strict=True))


def test_nothing_is_said_of_a_deletion() -> None:
    kept = stateful_set(whenDeleted="Delete")
    assert not findings_of(deletions.DATA_POLICIES_CHECK, planned(kept, Action.DELETE, before=kept))


def mounting(*mounts: dict[str, Any], kind: str = "Deployment") -> dict[str, Any]:
    """A workload with these mounts of the volume `data`, which is a claim or comes of a template."""
    container = {"name": "main", "volumeMounts": [{"name": "data", **one} for one in mounts]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}] if kind == "Deployment" else []
    template = {"template": {"spec": {"containers": [container], "volumes": volumes}}}
    return an_object("apps/v1", kind, "db", "shop", spec=template)


AT = {"mountPath": "/data"}
INSIDE = {**AT, "subPath": "in"}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        pytest.param([AT], [INSIDE], True, id="a folder of it"),
        pytest.param([INSIDE], [AT], True, id="all of it"),
        pytest.param([INSIDE], [{**AT, "subPathExpr": "$(POD)"}], True, id="a folder by the name of the pod"),
        pytest.param([AT], [{**AT, "subPath": "."}], False, id="the same"),
        pytest.param([AT], [AT, {"mountPath": "/more", "subPath": "in"}], False, id="a folder of it, too"),
        pytest.param([AT], [{"mountPath": "/elsewhere"}], True, id="elsewhere"),
    ],
)
def test_a_claim_of_which_another_folder_is_mounted_is_told(
    before: list[dict[str, Any]], after: list[dict[str, Any]], kind: str, *, is_told: bool
) -> None:
    old, new = mounting(*before, kind=kind), mounting(*after, kind=kind)
    found = named(findings_of(deletions.DATA_POLICIES_CHECK, planned(new, Action.UPDATE, before=old)), "DEL-03")
    assert [finding.severity for finding in found] == ([Severity.DANGEROUS] if is_told else [])
