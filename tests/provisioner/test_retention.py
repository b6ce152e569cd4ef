"""Which claims go with a StatefulSet that is deleted or scaled down, by its own retention policy."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.retention import claims_of, left_out, takes_claims_along, takes_more
from provisioner.values import Action, ObjectRef, PlannedAction

REF = ObjectRef("apps", "v1", "StatefulSet", "shop", "db")


def stateful_set(replicas: int | None = 3, *, scaled: str = "", deleted: str = "", start: int = 0) -> dict[str, Any]:
    policy = {name: value for name, value in (("whenScaled", scaled), ("whenDeleted", deleted)) if value}
    spec: dict[str, Any] = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    spec |= {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}
    spec |= {"replicas": replicas} if replicas is not None else {}
    spec |= {"ordinals": {"start": start}} if start else {}
    meta = {"name": "db", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}


def planned(action: Action, before: dict[str, Any], after: dict[str, Any] | None = None) -> PlannedAction:
    return PlannedAction(REF, action, before=before, after=after)


@pytest.mark.parametrize(
    ("before", "after", "pods"),
    [
        (stateful_set(3), stateful_set(1), ()),
        (stateful_set(3, scaled="Retain"), stateful_set(1, scaled="Retain"), ()),
        (stateful_set(3, scaled="Delete"), stateful_set(1, scaled="Delete"), (range(1, 3),)),
        (stateful_set(3, scaled="Delete"), stateful_set(1), (range(1, 3),)),
        (stateful_set(3), stateful_set(1, scaled="Delete"), (range(1, 3),)),
        (stateful_set(3, scaled="Delete"), stateful_set(None, scaled="Delete"), ()),
        (stateful_set(3, scaled="Delete"), stateful_set(5, scaled="Delete"), ()),
        (stateful_set(3, scaled="Delete"), stateful_set(3, scaled="Delete", start=2), (range(2),)),
        (stateful_set(3, scaled="Delete"), stateful_set(0, scaled="Delete"), (range(3),)),
    ],
)
def test_the_pods_whose_claims_go_follow_from_policy_size_and_first_number(
    before: dict[str, Any], after: dict[str, Any], pods: tuple[range, ...]
) -> None:
    assert left_out(before, after) == pods


def test_only_claims_of_its_templates_are_its_own() -> None:
    names = ("data-db-0", "data-db-11", "data-db-x", "data-db-", "data-dbx-0", "other-db-0")
    claims = [{"metadata": {"name": name}} for name in names]
    assert [one["metadata"]["name"] for one in claims_of(stateful_set(), claims)] == ["data-db-0", "data-db-11"]


GOES = planned(Action.DELETE, stateful_set(deleted="Delete"))
STAYS = planned(Action.DELETE, stateful_set())


def scaled(size: int) -> PlannedAction:
    return planned(Action.UPDATE, stateful_set(size, scaled="Delete"), stateful_set(1, scaled="Delete"))


@pytest.mark.parametrize(
    ("now", "reviewed", "words"),
    [
        (GOES, STAYS, "its PersistentVolumeClaims would be deleted"),
        (STAYS, GOES, ""),
        (GOES, GOES, ""),
        (scaled(5), scaled(3), "of pods 1 to 4 would be deleted"),
        (scaled(2), scaled(3), ""),
    ],
)
def test_only_what_goes_beyond_the_reviewed_plan_is_said(
    now: PlannedAction, reviewed: PlannedAction, words: str
) -> None:
    said = takes_more(now, reviewed)
    assert words in said
    assert bool(said) == bool(words)


@pytest.mark.parametrize("spec", [None, [], "x", {"persistentVolumeClaimRetentionPolicy": []}, {"ordinals": 5}])
def test_a_spec_that_is_none_takes_nothing_along(spec: object) -> None:
    broken = {**stateful_set(), "spec": spec}
    assert not takes_claims_along(broken)
    assert left_out(broken, broken) == ()
