"""None"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    FieldConflict,
    Forbidden,
    InvalidObject,
    PreconditionFailed,
    UnknownKind,
)
from provisioner.pipeline import look_offline
from provisioner.review.base.facts import ClusterSurroundings, ServedKind
from provisioner.review.checks.objects import kubernetes_apis, objects
from provisioner.review.checks.objects.objects import try_offline
from provisioner.review.frame import report
from provisioner.values import Action, Finding, ObjectRef, PlannedAction, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, judged_by, planned
from tests.support.provisioner.shapes import TEXT, crd, crd_of, obj, root, thing, version

MAP = config_map()
PROBLEMS = [
    (Forbidden.code, "apply ConfigMap: is forbidden", "PRE-01"),
    (Forbidden.code, "user is attempting to grant RBAC permissions not currently held: {}", "PRE-02"),
    (FieldConflict.code, "kubectl owns .data.a: conflict", "OWN-01"),
    (AlreadyExists.code, "exists already and does not belong to this deployment (owned by X y)", "OWN-02"),
    (ClusterError.code, 'namespaces "shop" not found', "PRE-05"),
    (UnknownKind.code, "the cluster serves no ConfigMap", "PRE-07"),
    (InvalidObject.code, "spec.a: unknown field", "PRE-09"),
    (PreconditionFailed.code, "is being deleted and waits for its finalizers", "OBJ-08"),
]


def found_by(*actions, **rest) -> list[Finding]:
    return judged_by(facts(*actions, **rest), [objects.OBJECTS_CHECK])


@pytest.mark.parametrize(("code", "words", "rule"), PROBLEMS, ids=[rule for _, _, rule in PROBLEMS])
def test_what_stands_in_the_way_is_breaking_and_keeps_the_servers_words(code: str, words: str, rule: str) -> None:
    action = planned(
        MAP, Action.UPDATE, problem="it is refused", problem_code=code, is_proved=False, server_words=words
    )
    (found,) = found_by(action)
    assert (found.rule, found.severity) == (rule, Severity.BREAKING)
    assert "it is refused" in found.message
    assert (words in found.message, found.server_words) == (False, words)


@pytest.mark.parametrize(
    ("api", "told"),
    [
        pytest.param(
            ("policy/v1beta1", "PodDisruptionBudget"),
            {"variant": "PRE-07a", "removedIn": "1.25", "servedIn": ["policy/v1"]},
            id="removed",
        ),
        pytest.param(("policy/v2", "PodDisruptionBudget"), {"variant": "PRE-07b", "servedIn": ["policy/v1"]}, id="new"),
        pytest.param(
            ("shop.example.com/v2", "Order"),
            {"variant": "PRE-07c", "servedIn": ["shop.example.com/v1"]},
            id="in another version",
        ),
        pytest.param(("shop.example.com/v1", "Basket"), {}, id="not defined"),
    ],
)
def test_why_nothing_serves_a_kind_is_evidence(api: tuple[str, str], told: dict[str, Any]) -> None:
    kinds = (
        ServedKind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        ServedKind("shop.example.com", "v1", "Order", "orders"),
    )
    obj = an_object(*api, "one", "shop")
    words = f"{ObjectRef.of(obj)}: the cluster serves no such kind"
    action = planned(obj, Action.CREATE, problem=words, problem_code=UnknownKind.code, is_proved=False)
    (found,) = found_by(action, around=ClusterSurroundings(kinds=kinds, version="v1.36.3"))
    assert found.rule == "PRE-07"
    said = {"code": UnknownKind.code, "action": "create", "words": "the cluster serves no such kind"}
    assert (found.variant, found.evidence) == ("in-the-way", {**said, **told})
    assert found.message.count("one") == 1, "the object is named once"


def test_a_problem_that_nobody_knows_is_unknown() -> None:
    (found,) = found_by(planned(MAP, Action.UPDATE, problem="418", problem_code="teapot", is_proved=False))
    assert found.severity is Severity.UNKNOWN


def test_somebody_elses_object_is_never_adopted() -> None:
    words = "ConfigMap shop/settings exists already (managed by Helm)"
    (found,) = found_by(planned(MAP, Action.ADOPT, problem=words, problem_code=AlreadyExists.code, is_proved=False))
    assert found.rule == "OWN-02"
    assert "managed by Helm" in found.message
    assert "not be adopted" in found.message


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        pytest.param(("apiextensions.k8s.io/v1", "CustomResourceDefinition"), Severity.BREAKING, id="CRD"),
        pytest.param(("v1", "Namespace"), Severity.BREAKING, id="Namespace"),
        pytest.param(("v1", "PersistentVolumeClaim"), Severity.BREAKING, id="PVC"),
        pytest.param(("v1", "PersistentVolume"), Severity.BREAKING, id="PV"),
        pytest.param(("apps/v1", "StatefulSet"), Severity.BREAKING, id="StatefulSet"),
        pytest.param(("v1", "Secret"), Severity.BREAKING, id="Secret"),
        pytest.param(("apps/v1", "Deployment"), Severity.DANGEROUS, id="other"),
    ],
)
def test_a_deletion_is_as_bad_as_what_goes_with_it(kind: tuple[str, str], severity: Severity) -> None:
    (found,) = found_by(planned(an_object(*kind, "a", "shop"), Action.DELETE, before={}))
    assert (found.rule, found.severity) == ("DEL-01", severity)


def test_a_replacement_names_field_and_consequence() -> None:
    before = an_object("apps/v1", "Deployment", "a", "shop", spec={"selector": {"matchLabels": {"a": "b"}}})
    after = an_object("apps/v1", "Deployment", "a", "shop", spec={"selector": {"matchLabels": {"a": "c"}}})
    replaced = planned(after, Action.REPLACE, before=before, is_proved=False)
    found = next(finding for finding in found_by(replaced) if finding.rule == "IMM-01")
    assert found.severity is Severity.BREAKING
    assert "spec.selector.matchLabels.a" in found.message
    assert "all its pods stop" in found.message


def test_a_change_lists_the_fields_with_both_values() -> None:
    (found,) = found_by(planned(config_map(a="2"), Action.UPDATE, before=config_map(a="1")))
    assert found.evidence["changes"] == [{"path": ["data", "a"], "before": "1", "after": "2"}]


def test_of_many_changed_fields_the_first_are_listed_and_the_rest_is_counted() -> None:
    before, after = (config_map(**{f"k{number:03}": value for number in range(150)}) for value in ("1", "2"))
    (found,) = found_by(planned(after, Action.UPDATE, before=before))
    listed = [one["path"][-1] for one in found.evidence["changes"]]
    assert listed == [f"k{number:03}" for number in range(20)]
    assert found.evidence["left_out"] == 130
    assert "and 147 more fields" in found.message


def test_a_change_that_is_not_listed_still_asks_for_a_new_waiver() -> None:
    before = config_map(**{f"k{number:03}": "1" for number in range(150)})
    prints = []
    for value in ("2", "3"):
        after = config_map(**{f"k{number:03}": value if number == 149 else "2" for number in range(150)})
        (found,) = found_by(planned(after, Action.UPDATE, before=before))
        prints.append(found.fingerprint)
    assert prints[0] != prints[1]


def test_what_a_crd_says_of_its_fields_comes_after_what_it_accepts() -> None:
    def crd(word: str, limit: int) -> dict[str, Any]:
        fields = {f"a{number:02}": {"type": "string", "description": word} for number in range(40)}
        fields |= {"description": {"type": "string", "maxLength": limit}, "z": {"type": "string", "maxLength": limit}}
        schema = {"type": "object", "properties": fields}
        versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
        spec = {"group": "g.example.com", "versions": versions}
        return an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "ws.g.example.com", spec=spec)

    found = next(
        finding
        for finding in found_by(planned(crd("b", 2), Action.UPDATE, before=crd("a", 1)))
        if finding.rule == "OBJ-02"
    )
    first = [tuple(one["path"][-2:]) for one in found.evidence["changes"]][:3]
    assert first == [("description", "maxLength"), ("z", "maxLength"), ("a00", "description")]


def test_a_replacement_lists_first_what_makes_it_necessary() -> None:
    def deployment(word: str) -> dict[str, Any]:
        labels = {f"l{number:02}": word for number in range(40)}
        spec = {
            "minReadySeconds": len(word),
            "selector": {"matchLabels": {"z": word}},
            "template": {"metadata": labels},
        }
        return an_object("apps/v1", "Deployment", "a", "shop", data=labels, spec=spec)

    found = next(
        finding
        for finding in found_by(planned(deployment("b"), Action.REPLACE, before=deployment("a"), is_proved=False))
        if finding.rule == "IMM-01"
    )
    assert found.evidence["changes"][0]["path"] == ["spec", "selector", "matchLabels", "z"]


def test_of_a_secret_only_key_names_are_said() -> None:
    before = an_object("v1", "Secret", "a", "shop", data={"k": "T2xkUGw0bnRlZA=="})
    after = an_object("v1", "Secret", "a", "shop", data={"k": "UGw0bnRlZA=="})
    (found,) = found_by(planned(after, Action.UPDATE, before=before))
    assert "Pl4nted" not in str(found)
    assert "UGw0bnRlZA" not in str(found)


@pytest.mark.parametrize(
    ("action", "is_immutable", "told"),
    [
        pytest.param(Action.UPDATE, False, ("SEC-07", "written"), id="written"),
        pytest.param(Action.UPDATE, True, ("SEC-07", "written-immutable"), id="made anew where it changes"),
        pytest.param(Action.REPLACE, False, ("IMM-01", "replaced-secret"), id="made anew"),
    ],
)
def test_of_a_secret_that_nobody_may_get_is_said_what_is_done_with_it(
    action: Action, is_immutable: bool, told: tuple[str, str]
) -> None:
    secret = an_object("v1", "Secret", "a", "shop", immutable=is_immutable)
    (found,) = found_by(planned(secret, action, before=secret))
    assert (found.rule, found.variant) == told


def test_how_an_object_is_applied_is_a_finding() -> None:
    (found, *_) = (
        finding for finding in found_by(planned(MAP, Action.NONE, notes=("it is new",))) if finding.rule == "OBJ-05"
    )
    assert (found.variant, found.message) == ("noted", "ConfigMap shop/settings: it is new")


def test_each_warning_of_the_server_is_a_finding() -> None:
    found = found_by(planned(MAP, Action.CREATE, warnings=("old API", "no limits")))
    warned = [finding for finding in found if finding.rule == "OBJ-05"]
    assert [one.server_words for one in warned] == ["old API", "no limits"]
    assert {one.message for one in warned} == {"The API server warns of ConfigMap shop/settings"}


def test_a_warning_about_what_stays_as_it_is_is_nothing_new() -> None:
    same = planned(MAP, Action.NONE, before=MAP, warnings=("old API",))
    (kept,) = found_by(same, content=content_with(MAP))
    assert (kept.rule, kept.is_new, kept.server_words) == ("OBJ-05", False, "old API")
    (let_go,) = found_by(same, content=content_with())
    assert let_go.is_new


def test_S11_a_container_that_somebody_else_added_is_a_finding() -> None:
    def deployment(*names: str) -> dict[str, object]:
        pod = {"containers": [{"name": "main"}], "initContainers": [{"name": name} for name in names]}
        return an_object("apps/v1", "Deployment", "a", "shop", spec={"template": {"spec": pod}})

    wished, result = deployment(), deployment("foreign")
    found = found_by(planned(result, Action.UPDATE, before=result), content=content_with(wished))
    foreign = next(finding for finding in found if finding.rule == "OBJ-06")
    assert foreign.severity is Severity.DANGEROUS
    assert "foreign" in foreign.message


def test_what_the_server_could_not_be_asked_is_unknown_and_says_why() -> None:
    namespace = an_object("v1", "Namespace", "shop")
    found = found_by(planned(namespace, Action.CREATE), planned(MAP, Action.CREATE, is_proved=False))
    unknown = next(finding for finding in found if finding.severity is Severity.UNKNOWN)
    assert "the namespace shop comes with this bundle" in unknown.message
    assert unknown.ref == ObjectRef.of(MAP)


def in_new_namespace(obj: dict[str, Any], schema: dict[str, Any] | None) -> list[Finding]:
    namespace = an_object("v1", "Namespace", "shop")
    schemas = {("", "v1", "ConfigMap"): schema} if schema else {}
    actions = planned(namespace, Action.CREATE), planned(obj, Action.CREATE, is_proved=False)
    return found_by(*actions, around=ClusterSurroundings(schemas=schemas))


PUBLISHED = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "data": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


@pytest.mark.parametrize(
    ("obj", "rule", "severity"),
    [
        pytest.param(MAP, "OBJ-03", Severity.NOTABLE, id="fits"),
        pytest.param({**MAP, "data": {"a": 1}}, "OBJ-07", Severity.BREAKING, id="wrong type"),
        pytest.param({**MAP, "dta": {"a": "b"}}, "OBJ-07", Severity.BREAKING, id="unknown field"),
    ],
)
def test_a_first_install_is_held_against_the_schemas_that_the_cluster_publishes(
    obj: dict[str, Any], rule: str, severity: Severity
) -> None:
    found = in_new_namespace(obj, PUBLISHED)
    assert [finding.severity for finding in found if finding.rule == rule] == [severity]
    assert not [finding for finding in found if finding.severity is Severity.UNKNOWN]


def test_what_fits_a_schema_is_said_once_with_what_no_schema_knows() -> None:
    (fits,) = [one for one in in_new_namespace(MAP, PUBLISHED) if one.rule == "OBJ-03"]
    assert "could not be tried" in fits.message
    assert "admission webhooks" in fits.message


def test_what_a_webhook_would_not_let_be_tried_stays_unknown_whatever_its_schema_says() -> None:
    around = ClusterSurroundings(schemas={("", "v1", "ConfigMap"): PUBLISHED})
    found = found_by(planned(MAP, Action.CREATE, is_proved=False), around=around)
    assert Severity.UNKNOWN in [finding.severity for finding in found]


def test_what_the_bundles_own_webhook_would_not_let_be_tried_says_so_once() -> None:
    words = "a webhook of the bundle itself does not answer"
    found = found_by(planned(MAP, Action.UPDATE, before=MAP, is_proved=False, notes=(words,)))
    (said,) = [finding for finding in found if words in finding.message]
    assert (said.rule, said.severity) == ("OBJ-04", Severity.UNKNOWN)


def test_S09_a_refused_secret_keeps_its_values() -> None:
    secret = an_object("v1", "Secret", "a", "shop", data={"k": {"x": "Pl4nted"}})
    schema = {"type": "object", "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}}}
    actions = (
        planned(an_object("v1", "Namespace", "shop"), Action.CREATE),
        planned(secret, Action.CREATE, is_proved=False),
    )
    found = found_by(*actions, around=ClusterSurroundings(schemas={("", "v1", "Secret"): schema}))
    assert "OBJ-07" in [finding.rule for finding in found]
    assert "Pl4nted" not in str(found)


def test_a_custom_resource_of_the_same_bundle_is_tried_on_its_schema_and_marked() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "orders", "kind": "Order"}
    crd = an_object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "orders.shop.example.com",
        spec={"group": "shop.example.com", "names": names, "versions": [version]},
    )
    good = an_object("shop.example.com/v1", "Order", "good", "shop", spec={"a": "b"})
    bad = an_object("shop.example.com/v1", "Order", "bad", "shop", spec={"a": 1})
    actions = [planned(crd, Action.CREATE)] + [planned(one, Action.CREATE, is_proved=False) for one in (good, bad)]
    found = {(finding.rule, finding.ref.name): finding.severity for finding in found_by(*actions) if finding.ref}
    assert found["OBJ-03", "good"] is Severity.NOTABLE
    assert found["OBJ-07", "bad"] is Severity.BREAKING


def stateful(name: str = "web", *, image: str = "a", service: str | None = "web") -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template} | ({"serviceName": service} if service else {})
    return an_object("apps/v1", "StatefulSet", name, "shop", spec=spec)


@pytest.mark.parametrize(
    ("before", "after", "proved", "count"),
    [
        pytest.param(stateful(), stateful(service="new"), False, 1, id="never changes"),
        pytest.param(stateful(), stateful(image="b"), False, 0, id="may change"),
        pytest.param(stateful(), stateful(service=None), False, 0, id="left out: the server keeps its own"),
        pytest.param(stateful(), stateful(service="new"), True, 0, id="the server was asked and took it"),
    ],
)
def test_fields_that_never_change_are_known_where_nobody_could_be_asked(
    before: dict[str, Any], after: dict[str, Any], proved: bool, count: int
) -> None:
    action = planned(after, Action.UPDATE, before=before, is_proved=proved)
    found = judged_by(facts(action, is_offline=not proved), [objects.OBJECTS_CHECK, kubernetes_apis.BUILTIN_CHECK])
    assert [finding.path for finding in found if finding.rule == "IMM-01"] == [("spec", "serviceName")] * count


def test_a_replacement_names_only_what_forces_it() -> None:
    replaced = planned(stateful(image="b", service="new"), Action.REPLACE, before=stateful(), is_proved=False)
    found = next(finding for finding in found_by(replaced) if finding.rule == "IMM-01")
    assert "spec.serviceName" in found.message
    assert "image" not in found.message


@pytest.mark.parametrize(
    ("old", "new", "stay", "changed"),
    [
        pytest.param({"stringData": {"a": "1", "b": "2"}}, {"stringData": {"a": "1"}}, ["b"], False, id="left out"),
        pytest.param({"stringData": {"a": "1", "b": "2"}}, {"data": {"a": "MQ=="}}, ["b"], True, id="of both"),
        pytest.param({"stringData": {"a": "1", "b": "2"}}, {}, ["a", "b"], False, id="all left out"),
        pytest.param({"data": {"b": "Mg=="}}, {"data": {}}, [], True, id="written as data"),
        pytest.param({"data": {"b": "Mg=="}, "stringData": {"b": "2"}}, {}, [], True, id="written as both"),
        pytest.param({"stringData": {"b": "2"}}, {"stringData": {"b": "3"}}, [], True, id="another value"),
    ],
)
def test_keys_that_were_written_as_string_data_stay(
    old: dict[str, Any], new: dict[str, Any], stay: list[str], changed: bool
) -> None:
    before, after = (an_object("v1", "Secret", "a", "shop", **one) for one in (old, new))
    found = look_offline(content_with(after), content_with(before))
    assert [finding.evidence["keys"] for finding in found.findings if finding.rule == "OBJ-06"] == (
        [stay] if stay else []
    )
    assert [one.action for one in found.plan.actions] == [Action.UPDATE if changed else Action.NONE]
    written = {*new.get("data", {}), *new.get("stringData", {})}
    told = [set(finding.evidence["keys"]) for finding in found.findings if finding.rule == "SEC-01"]
    assert told == ([written] if written else []), "of the bundle's own values only"


def test_an_object_is_tried_on_the_schema_that_comes_with_it() -> None:
    content = content_with(crd_of(obj(a=TEXT)), thing({"a": 1}))
    found = try_offline(facts(content=content), ObjectRef.of(thing({})))
    assert found.is_tried
    assert found.errors[0].startswith("spec.a: Invalid value")


@pytest.mark.parametrize("odd", [{"type": ["string"]}, {"enum": "a"}, {"maxLength": "5"}], ids=str)
def test_a_schema_that_has_not_the_form_of_one_tries_nothing_and_says_so(odd: dict[str, Any]) -> None:
    content = content_with(crd_of(obj(a=odd)), thing({"a": 1}))
    found = try_offline(facts(content=content), ObjectRef.of(thing({})))
    assert not found.is_tried
    assert found.why
    assert found.why.variant == "schema-unreadable"
    assert "properties[spec].properties[a]" in dict(found.why.params)["problem"]


@pytest.mark.parametrize(
    ("defined", "spec", "told"),
    [
        pytest.param(version("v1"), {}, ("OBJ-04", "no-schema"), id="no schema"),
        pytest.param(version("v1", root(obj(a={"enum": "a"}))), {}, ("OBJ-04", "schema-unreadable"), id="bad"),
        pytest.param(version("v2", obj()), {}, ("OBJ-07", "version-not-served"), id="another version"),
        pytest.param(version("v1", root(obj())), {"b": 1}, ("OBJ-07", "pruned"), id="unknown field"),
        pytest.param(version("v1", root(obj(a=TEXT))), {"a": 1}, ("OBJ-07", "unfit"), id="wrong type"),
        pytest.param(version("v1", root(obj(a=TEXT))), {"a": "b"}, ("OBJ-03", "fits-own-schema"), id="fits"),
    ],
)
def test_what_comes_of_trying_is_said_of_the_object(defined: Any, spec: Any, told: tuple[str, str]) -> None:
    new = thing(spec)
    actions = planned(crd(defined), Action.CREATE), planned(new, Action.CREATE, is_proved=False)
    found = [
        finding for finding in judged_by(facts(*actions), [objects.OBJECTS_CHECK]) if finding.ref == ObjectRef.of(new)
    ]
    assert told in [(finding.rule, finding.variant) for finding in found]


def test_of_many_errors_the_first_are_shown_and_the_others_counted() -> None:
    new = thing(dict.fromkeys("abcde", 1))
    definition = crd_of(obj(**dict.fromkeys("abcde", TEXT)))
    actions = planned(definition, Action.CREATE), planned(new, Action.CREATE, is_proved=False)
    (found,) = [finding for finding in judged_by(facts(*actions), [objects.OBJECTS_CHECK]) if finding.rule == "OBJ-07"]
    assert len(found.evidence["errors"]) == 5
    assert found.message.endswith("; and 2 more")


HELM = "the Helm release shop in prod"


def owned(name: str, owner: str) -> PlannedAction:
    obj = an_object("v1", "ConfigMap", name, "prod")
    return replace(planned(obj, Action.UPDATE, before=obj), owner=owner)


def found(*actions: PlannedAction) -> list[Finding]:
    content = content_with(*(one.after for one in actions if one.after is not None))
    given = facts(*actions, content=content)
    return [finding for finding in report(given, [objects.OWNERS_CHECK]).findings if finding.rule == "OWN-03"]


def test_each_owner_has_one_line_with_the_number_of_its_objects() -> None:
    told = found(
        *(owned(f"m{at:02}", HELM) for at in range(27)),
        owned("x", "the Argo CD application web"),
        owned("y", "nobody by their marks (written by kubectl)"),
        owned("z", ""),
    )
    assert [(one.rule, one.severity) for one in told] == [("OWN-03", Severity.NOTABLE)] * 3
    words = {str(one.evidence["owner"]): one.message for one in told}
    assert words[HELM] == (
        "27 objects belong to the Helm release shop in prod: ConfigMap prod/m00, ConfigMap prod/m01 and 25 more. The "
        "report is as if this deployment adopted them; a request does so with spec.adoptHelmRelease: shop and "
        "spec.installNamespace: prod"
    )
    assert words["the Argo CD application web"].endswith("a request is stopped until that owner has let go")
    assert "spec.collisionProtection: IfNoController" in words["nobody by their marks (written by kubectl)"]
    assert {len(one.evidence["objects"]) for one in told} == {27, 1}


def test_of_very_many_objects_all_are_counted_and_some_named() -> None:
    (told,) = found(*(owned(f"m{at:04}", HELM) for at in range(objects.MAX_OWNED + 600)))
    assert told.message.startswith("1,100 objects belong to")
    assert "prod/m0001 and 1,098 more." in told.message
    assert len(told.evidence["objects"]) == objects.MAX_OWNED


def test_nobody_is_advised_to_adopt_what_belongs_to_kubernetes() -> None:
    obj = an_object("v1", "Namespace", "kube-system")
    (told,) = found(replace(planned(obj, Action.UPDATE, before=obj), owner="Kubernetes itself"))
    assert told.message == (
        "1 object belongs to Kubernetes itself: Namespace kube-system. The report is as if this deployment adopted it; "
        "no request does so: leave Kubernetes' own namespaces out of the bundle"
    )


def test_nothing_is_said_where_nothing_is_planned_for_others() -> None:
    assert found(owned("z", "")) == []
