"""What somebody may do with APIs: by rules, by named objects, and where an authorizer cannot list what it allows."""

from __future__ import annotations

from typing import Any

from provisioner.cluster.annotations import RevisionOwner, Tracking
from provisioner.cluster.client.discovery import Served, ServedResource
from provisioner.extensions import (
    AccessLevel,
    ApiVersion,
    Extension,
    ExtensionApi,
    LocalRights,
    extensions_of,
    open_questions,
    rights_of,
    role_of,
)
from provisioner.rbac import OwnRules, PolicyRule
from provisioner.values import ObjectRef

SOURCE = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "x")
MANAGED: list[dict[str, Any]] = [
    {"manager": "pratique", "fieldsV1": {"f:metadata": {"f:annotations": {"f:core.rukpak.io/owner": {}}}}}
]


def api(plural: str, *, is_namespaced: bool = True, **more: Any) -> ExtensionApi:
    found: dict[str, Any] = {"versions": (ApiVersion("v1"),), "source": SOURCE, **more}
    return ExtensionApi("example.com", plural, plural.title(), is_namespaced, **found)


def test_two_hundred_kinds_take_no_question_where_the_rules_are_complete_and_each_verb_one_where_not() -> None:
    apis = [api(f"things{number}") for number in range(200)]
    held = PolicyRule(("get", "list"), ("example.com",), ("*",))
    complete, partly = OwnRules((held,)), OwnRules((held,), is_complete=False, problem="webhook: not supported")
    assert not list(open_questions(LocalRights("shop", complete, complete), apis))
    place = LocalRights("shop", partly, partly)
    questions = list(open_questions(place, apis))
    assert len(questions) == 200 * 6
    rights = rights_of(place, apis, {questions[0]: True, questions[1]: False})
    first = rights.apis["things0.example.com"]
    assert (first.verbs, len(first.unknown)) == (("get", "list", "watch"), 4)
    assert (rights.unasked, rights.problem) == (200 * 6 - 2, "webhook: not supported")


def test_what_is_in_no_namespace_is_not_used_by_a_right_in_one() -> None:
    here = OwnRules((PolicyRule(("*",), ("*",), ("*",)),))
    place = LocalRights("shop", here, OwnRules(()))
    rights = rights_of(place, [api("widgets"), api("fleets", is_namespaced=False)], {})
    assert len(rights.apis["widgets.example.com"].verbs) == 8
    assert rights.apis["fleets.example.com"].verbs == ()


def test_a_console_of_objects_is_for_admins_alone_and_verbs_that_nobody_serves_are_not_granted() -> None:
    machines = api("machines", verbs=frozenset({"get", "list"}), subresources=("console", "status"))
    rules = {level: role_of(Extension("vm", (machines,)), level, is_aggregated=False)["rules"] for level in AccessLevel}
    assert [(one["resources"], one["verbs"]) for one in rules[AccessLevel.EDIT]] == [
        (["machines"], ["get", "list"]),
        (["machines/status"], ["get"]),
    ]
    assert [(one["resources"], one["verbs"]) for one in rules[AccessLevel.ADMIN]] == [
        (["machines", "machines/console", "machines/status"], ["*"])
    ]


def service(owner: str, version: str, message: str) -> dict[str, object]:
    meta = Tracking.of("", RevisionOwner(owner, 1)).put_on({"name": f"{version}.example.com", "managedFields": MANAGED})
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": meta,
        "spec": {"group": "example.com", "version": version},
        "status": {"conditions": [{"type": "Available", "status": "False", "message": message}]},
    }


def test_an_aggregated_api_whose_server_is_down_is_unknown_and_a_neighbour_in_the_same_group_is_not() -> None:
    served = Served(
        (ServedResource("example.com", "v1", "widgets", "Widget", True, frozenset({"get"})),),
        frozenset({("example.com", "v2")}),
    )
    found = extensions_of(
        {"one": True, "two": True},
        [],
        [service("one", "v1", "all is well"), service("two", "v2", "no endpoints")],
        served,
        "pratique",
    )
    one, two = found
    assert [it.name for it in one.apis] == ["widgets.example.com"]
    assert one.apis[0].problem == ""
    assert two.apis == ()
    assert [(it.version, it.why) for it in two.unknown] == [("v2", "no endpoints")]


def test_words_that_somebody_else_wrote_into_a_definition_name_no_owner() -> None:
    forged = service("one", "v1", "")
    forged["metadata"] = {**forged["metadata"], "managedFields": [{**MANAGED[0], "manager": "kubectl-edit"}]}
    served = Served((ServedResource("example.com", "v1", "widgets", "Widget", True),))
    (one,) = extensions_of({"one": True}, [], [forged], served, "pratique")
    assert one.apis == ()
