"""Roles and bindings of shapes that no API server would take: reports still say something, and nothing crashes."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from provisioner import pipeline
from provisioner.errors import TooManyRights
from provisioner.rbac import RbacSubject, allows, compact, covers, holds, minimal
from provisioner.review.output import permission_text
from provisioner.review.preflight import findings
from provisioner.review.preflight.account_rights import PreflightFacts
from provisioner.review.preflight.answer import preflight
from provisioner.values import AccessRequest, Content, Severity
from tests.provisioner.rbac.random_roles import world
from tests.support.provisioner.contents import an_object, content_with
from tests.support.provisioner.roles import account, bound, cluster_role, rule, rules

pytestmark = pytest.mark.thorough

JUNK = (None, 5, True, "x", [], {}, [None], [5], ["*"], {"a": 1}, [{}], [[1]], {"x": [1]}, -1.5)
ROBOT = RbacSubject("ServiceAccount", "robot", "near")
POD = {"hostNetwork": True, "serviceAccountName": "robot", "containers": [{"securityContext": {"privileged": True}}]}
OTHERS = (
    an_object("v1", "ServiceAccount", "robot", "near"),
    an_object("apps/v1", "Deployment", "web", "near", spec={"template": {"spec": POD}}),
    an_object("v1", "Service", "web", "near", spec={"type": "NodePort", "selector": {"a": "b"}}),
    an_object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "orders.x",
        spec={"group": "x", "names": {"kind": "Order", "plural": "orders"}, "versions": [{"name": "v1"}]},
    ),
    an_object("x/v1", "Order", "one", "near"),
)
SEEDS = range(60)


def contents(seed: int) -> tuple[Content, Content]:
    """A sound bundle, and the same with something else in half of its objects."""
    dice = random.Random(seed)
    sound = [*world(dice, "p", ("near", "far")).objects, *OTHERS]
    return content_with(*sound), content_with(*(_broken(dice, one) if dice.random() < 0.5 else one for one in sound))


def _broken(dice: random.Random, obj: dict[str, Any]) -> dict[str, Any]:
    made: Any = copy.deepcopy(obj)
    path = dice.choice([one for one in _paths(made) if _may_break(one)] or [("broken",)])
    part = made
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = copy.deepcopy(dice.choice(JUNK))
    return made  # type: ignore[no-any-return]  # copied from a dict


def _may_break(path: tuple[Any, ...]) -> bool:
    """What makes it this object stays; without that it is none of ours."""
    return bool(path) and path[0] not in {"apiVersion", "kind"} and path not in {("metadata",), *_NAMES}


_NAMES = {("metadata", "name"), ("metadata", "namespace")}


def _paths(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in inner:
        yield from _paths(value, (*path, key))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_permission_report_says_something_of_everything(seed: int) -> None:
    sound, broken = contents(seed)
    for new, old in ((broken, sound), (sound, broken)):
        found = pipeline.permissions(None, new, old)
        assert permission_text.as_text(found, {})
        assert permission_text.to_record(found, {})
        crashed = [one for one in pipeline.look_offline(new, old).findings if one.rule == "CRASHED"]
        assert not [one.message for one in crashed if one.evidence["check"] == "permissions"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_preflight_says_something_of_everything(seed: int) -> None:
    _, broken = contents(seed)
    live = tuple(one.body for one in broken.manifests)
    for roles in (None, live):
        found = preflight(PreflightFacts(ROBOT, broken.manifests, roles=roles, namespaces=frozenset({"near"})))
        assert findings.as_text(found)
        assert findings.to_record(found)


SIZES = ((100, 100, 20), (200, 200, 20), (600, 600, 40))
UNDECIDED = "too many rights to compare"


def big(size: tuple[int, int, int], *, more_verbs: int = 0) -> dict[str, Any]:
    """A rule of a few kilobytes that grants as many rights as its three lists have combinations."""
    groups, resources, verbs = size
    return {
        "apiGroups": [f"g{number}.io" for number in range(groups)],
        "resources": [f"r{number}" for number in range(resources)],
        "verbs": [f"v{number}" for number in range(verbs + more_verbs)],
    }


def big_bundle(size: tuple[int, int, int], *, accounts: int = 1) -> Content:
    named = [account(f"robot{number}", "near") for number in range(accounts)]
    return content_with(cluster_role("big", big(size)), bound("big", *named))


def small_bundle() -> Content:
    return content_with(cluster_role("big", rule("get")), bound("big", account("robot0", "near")))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_big_rule_is_covered_by_itself_and_by_wider_ones(size: tuple[int, int, int]) -> None:
    (wanted,) = rules(big(size))
    assert covers([wanted], [wanted]).covered
    assert covers(rules(rule("*", "*", group="*")), [wanted]).covered
    assert allows([wanted], AccessRequest("v3", "g3.io", "r3"))
    assert not allows([wanted], AccessRequest("get", "g3.io", "r3"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_big_rule_that_is_not_held_is_an_error_in_words_and_never_a_yes(size: tuple[int, int, int]) -> None:
    wanted = rules(big(size))
    assert not holds([], wanted)
    with pytest.raises(TooManyRights, match=f"found {size[0] * size[1] * size[2]} single rights .* allowed are"):
        covers([], wanted)


def test_of_a_big_rule_only_what_is_not_held_counts() -> None:
    held, wanted = rules(big((100, 90, 20))), rules(big((100, 90, 20), more_verbs=1))
    assert [one.verbs for one in covers(held, wanted).missing] == [("v20",)] * 9000
    assert holds(wanted, held)
    assert not holds(held, wanted)


def test_a_big_rule_held_in_halves_is_held() -> None:
    (wanted,) = rules(big((600, 600, 40)))
    halves = [replace(wanted, api_groups=wanted.api_groups[part::2]) for part in (0, 1)]
    assert covers(halves, [wanted]).covered


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_big_rule_is_minimal_without_being_broken_down(size: tuple[int, int, int]) -> None:
    (wanted,) = rules(big(size))
    (found,) = minimal([wanted, wanted])
    assert found == replace(
        wanted,
        verbs=tuple(sorted(wanted.verbs)),
        api_groups=tuple(sorted(wanted.api_groups)),
        resources=tuple(sorted(wanted.resources)),
    )
    with pytest.raises(TooManyRights):
        compact([wanted])


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("is_new", [True, False], ids=["gained", "lost"])
def test_the_reports_say_that_too_many_rights_are_undecided(size: tuple[int, int, int], is_new: bool) -> None:
    sides = (big_bundle(size), small_bundle())
    new, old = sides if is_new else reversed(sides)
    found = pipeline.permissions(None, new, old)
    text = permission_text.as_text(found, {})
    assert permission_text.to_record(found, {})["worst"] in {"unknown", "dangerous"}
    assert UNDECIDED in " ".join(text.split())
    assert "no effective change" not in text
    assert "ClusterRole" in found.problems[0]
    assert str(size[0] * size[1] * size[2]) in found.problems[0]
    unknown = [one for one in pipeline.look_offline(new, old).findings if UNDECIDED in one.message]
    assert [(str(one.severity), one.rule) for one in unknown] == [("unknown", "RB-00")]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_big_role_that_stays_is_no_change(size: tuple[int, int, int]) -> None:
    found = pipeline.permissions(None, big_bundle(size), big_bundle(size))
    assert [(one.is_changed, found.problems) for one in found.accounts] == [(False, ())]


def test_many_accounts_with_a_big_role_are_each_undecided() -> None:
    found = pipeline.permissions(None, big_bundle((600, 600, 40), accounts=200), None)
    assert [one.is_undecided for one in found.accounts] == [True] * 200


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("is_live", [True, False])
def test_the_preflight_of_a_big_role_is_unknown(size: tuple[int, int, int], is_live: bool) -> None:
    roles = tuple(one.body for one in small_bundle().manifests) if is_live else None
    found = preflight(PreflightFacts(ROBOT, big_bundle(size).manifests, roles=roles))
    words = [one.message for one in found.findings if one.rule == "PRE-12"]
    assert any("single rights" in one and "cannot be told" in one for one in words)
    assert found.verdict is not Severity.SAFE


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_preflight_says_what_a_big_account_holds_in_excess_or_that_it_could_not(size: tuple[int, int, int]) -> None:
    live = (cluster_role("big", big(size)), bound("big", account("robot", "near")))
    found = preflight(PreflightFacts(ROBOT, small_bundle().manifests, roles=live))
    assert any(UNDECIDED in one.message for one in found.findings)


def test_accounts_beyond_what_is_compared_for_one_bundle_are_undecided_and_name_the_role() -> None:
    found = pipeline.permissions(None, big_bundle((50, 50, 4), accounts=6), None)
    undecided = [one for one in found.accounts if one.is_undecided]
    assert 0 < len(undecided) < 6
    assert len(found.problems) == len(undecided)
    assert all("ClusterRole" in one and "single rights" in one for one in found.problems)


def test_a_lost_right_is_shown_with_a_sign_and_no_escape_sequence() -> None:
    old = content_with(cluster_role("big", rule("get", "pods")), bound("big", account("robot0", "near")))
    new = content_with(cluster_role("big", rule("get", "nodes")), bound("big", account("robot0", "near")))
    text = permission_text.as_text(pipeline.permissions(None, new, old), {})
    assert "  - get pods" in text
    assert "\\u" not in text
