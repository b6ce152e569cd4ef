"""Roles and bindings of shapes that no API server would take: reports still say something, and nothing crashes."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from provisioner import pipeline
from provisioner.rbac import Subject
from provisioner.review import permission_text, preflight_text
from provisioner.review.preflight import PreflightFacts
from provisioner.review.preflight_answer import preflight
from provisioner.values import Content
from tests.provisioner.rbac.random_roles import world
from tests.provisioner.review.bundles import an_object, content_with

pytestmark = pytest.mark.thorough

JUNK = (None, 5, True, "x", [], {}, [None], [5], ["*"], {"a": 1}, [{}], [[1]], {"x": [1]}, -1.5)
ROBOT = Subject("ServiceAccount", "robot", "near")
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
        assert preflight_text.as_text(found)
        assert preflight_text.to_record(found)
