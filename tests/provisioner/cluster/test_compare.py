"""What counts as a difference, and what a person may see of it."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest

from provisioner.cluster.annotations import NONCE
from provisioner.cluster.compare import (
    MISSING,
    SHOWN_CHARACTERS,
    Altered,
    altered,
    altered_words,
    changes,
    cleaned,
    hidden,
    lost,
    masked,
    owner_words,
    share_texts,
)


def secret(**values: str) -> dict[str, Any]:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": data}


def pod_of(**container: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": [{"name": "main", **container}]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


def service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}


def test_what_the_server_keeps_for_itself_is_no_difference():
    live = secret(a="1")
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": [{}], "annotations": {NONCE: "x"}}
    live["status"] = {"phase": "Active"}
    assert cleaned(live) == secret(a="1")


def test_cleaning_leaves_the_object_as_it_was():
    live = secret(a="1") | {"metadata": {"name": "s", "uid": "u", "labels": {"a": "b"}}}
    before = copy.deepcopy(live)
    cleaned(live)["metadata"]["labels"]["a"] = "changed"
    assert live == before


def test_a_cleaned_object_keeps_the_order_of_its_fields():
    obj = {"kind": "ConfigMap", "metadata": {"uid": "1", "name": "a", "managedFields": [{}]}, "data": {"b": "1"}}
    assert json.dumps(cleaned(obj)) == '{"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "1"}}'


def large(text: str = "x", **more: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"text": text * 5000, **more}}


def test_a_large_text_that_two_objects_share_is_held_once():
    known, copied = large(), cleaned(json.loads(json.dumps(large(other="1"))))
    before = copy.deepcopy(copied)
    assert copied["data"]["text"] is not known["data"]["text"]
    share_texts(copied, known)
    assert copied["data"]["text"] is known["data"]["text"]
    assert copied == before


@pytest.mark.parametrize(
    "known",
    [large("y"), {"data": None}, {"data": {"text": {"x": "y"}}}, {"data": ["x" * 5000]}, {}],
    ids=["another text", "nothing", "a map there", "a list there", "an empty object"],
)
def test_sharing_texts_never_changes_an_object(known):
    copied = cleaned(large(number="1"))
    share_texts(copied, known)
    assert copied == cleaned(large(number="1"))


def test_a_secrets_values_are_replaced_by_what_happens_to_them():
    before, after = masked(secret(same="1", other="2", gone="3"), secret(same="1", other="x", new="4"))
    assert before is not None
    assert after is not None
    assert before["data"] == {"same": "unchanged", "other": "hidden", "gone": "hidden"}
    assert after["data"] == {"same": "unchanged", "other": "changed", "new": "added"}


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(secret(a="hunter2"), id="data"),
        pytest.param(secret() | {"stringData": {"a": "hunter2"}}, id="stringData"),
        pytest.param(
            secret(a="x")
            | {
                "metadata": {
                    "name": "s",
                    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"a":"hunter2"}}'},
                }
            },
            id="last applied",
        ),
    ],
)
def test_no_value_of_a_secret_is_ever_shown(state):
    shown = json.dumps([masked(None, state), masked(state, None), masked(state, secret(b="y")), hidden(state)])
    assert "hunter2" not in shown
    assert base64.b64encode(b"hunter2").decode() not in shown


def test_of_somebody_elses_secret_not_even_equality_is_told():
    assert hidden(secret(a="1"))["data"] == hidden(secret(a="2"))["data"] == {"a": "hidden"}


def test_changes_name_the_new_value_of_each_path():
    found = changes({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 1, "c": 3}, "e": {}})
    assert found == {("a", "c"): 3, ("e",): {}, ("d",): MISSING}


def test_what_the_server_chooses_anew_each_time_is_not_altered():
    planned = service(clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"], ports=[{"port": 80, "nodePort": 30001}])
    answer = service(clusterIP="10.0.0.2", clusterIPs=["10.0.0.2"], ports=[{"port": 80, "nodePort": 30002}])
    assert altered(planned, answer, service(ports=[{"port": 80}])) == []


def test_what_the_content_sets_itself_is_altered_when_it_differs():
    planned, answer = service(clusterIP="None"), service(clusterIP="10.0.0.2")
    (found,) = altered(planned, answer, planned)
    assert found == Altered("spec.clusterIP", '"None"', '"10.0.0.2"')
    assert found.words == 'spec.clusterIP was approved as "None" and is "10.0.0.2"'


@pytest.mark.parametrize(
    ("planned", "answer", "path"),
    [
        pytest.param(
            pod_of(image="a"), pod_of(image="b"), "spec.template.spec.containers[0].image", id="another image"
        ),
        pytest.param(service(a=1), service(a=1, b=2), "spec.b", id="a field more"),
        pytest.param(service(a=1, b=2), service(a=1), "spec.b", id="a field less"),
    ],
)
def test_S10_any_other_difference_is_altered(planned, answer, path):
    assert [one.path for one in altered(planned, answer, planned)] == [path]


def test_S10_a_secret_that_was_stored_with_another_value_is_altered():
    wished = secret() | {"stringData": {"a": "mine"}}
    _, planned = masked(None, wished)
    assert planned is not None
    assert altered(planned, secret(a="mine"), wished) == []
    assert altered(planned, secret(a="theirs"), wished) == [Altered("data.a")]
    assert altered(planned, secret(a="mine", b="more"), wished) == [Altered("data.b")]


def test_S09_S10_of_a_secret_only_the_path_is_told() -> None:
    found = [
        *altered(secret(a="mine"), secret(a="theirs"), secret(a="mine")),
        *lost(secret(a="mine"), secret(a="theirs")),
    ]
    assert altered_words(found) == "data.a"


def test_a_value_is_cut_short_and_the_rest_of_many_fields_is_counted() -> None:
    before, after = ({"data": {str(number): letter * 5000 for number in range(12)}} for letter in "ab")
    words = altered_words(altered(large() | before, large() | after, large()))
    assert words.endswith("; and 2 more fields")
    assert len(words) < 10 * 2 * (SHOWN_CHARACTERS + 40)


@pytest.mark.parametrize(
    ("wished", "found"),
    [
        pytest.param(
            pod_of(resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}}),
            pod_of(resources={"limits": {"cpu": "1", "memory": "1Gi"}}, image="a"),
            id="quantities",
        ),
        pytest.param(
            pod_of(resources={"limits": {"cpu": 1}}), pod_of(resources={"limits": {"cpu": "1"}}), id="a number"
        ),
        pytest.param(pod_of(env=[], args=None, tty=False), pod_of(), id="empty values"),
        pytest.param(secret() | {"stringData": {"a": "1"}}, secret(a="1"), id="stringData"),
    ],
)
def test_the_servers_own_way_of_writing_loses_nothing(wished, found):
    assert lost(wished, found) == []


@pytest.mark.parametrize(
    ("wished", "found", "path"),
    [
        pytest.param(
            pod_of(image="a"), pod_of(image="b"), "spec.template.spec.containers[0].image", id="another image"
        ),
        pytest.param(pod_of(tty=True), pod_of(), "spec.template.spec.containers[0].tty", id="a field less"),
        pytest.param(
            pod_of(args=["a"]), pod_of(args=["b", "c"]), "spec.template.spec.containers[0].args[0]", id="an item"
        ),
        pytest.param(secret(a="1"), secret(a="2"), "data.a", id="a secret value"),
        pytest.param(service(a="1"), service(a=True), "spec.a", id="another type"),
    ],
)
def test_what_the_content_sets_and_the_answer_has_not_is_lost(wished, found, path):
    assert [one.path for one in lost(wished, found)] == [path]


def test_an_item_that_somebody_put_before_ours_does_not_lose_ours():
    found = pod_of(image="a")
    found["spec"]["template"]["spec"]["containers"].insert(0, {"name": "sidecar", "image": "b"})
    assert lost(pod_of(image="a"), found) == []


def test_an_item_is_held_against_the_one_of_its_name_wherever_it_stands():
    found = pod_of(image="b")
    (main,) = found["spec"]["template"]["spec"]["containers"]
    found["spec"]["template"]["spec"]["containers"] = [{"name": "sidecar", "image": "a"}, main]
    assert [one.path for one in lost(pod_of(image="a"), found)] == ["spec.template.spec.containers[0].image"]


def test_another_order_of_as_many_items_is_one_difference():
    wished, found = ({"spec": {"hosts": [{"name": one} for one in names]}} for names in ("abc", "bca"))
    assert [one.path for one in lost(wished, found)] == ["spec.hosts (order)"]


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"annotations": {"meta.helm.sh/release-name": "shop"}}, "of the Helm release shop"),
        ({"labels": {"app.kubernetes.io/managed-by": "flux"}}, "managed by flux"),
        ({"ownerReferences": [{"kind": "ReplicaSet", "name": "web"}]}, "owned by ReplicaSet web"),
        ({"managedFields": [{"manager": "kubectl"}]}, "written by kubectl"),
        ({}, ""),
    ],
)
def test_who_seems_to_own_an_object_is_said(meta, words):
    assert owner_words({"metadata": meta}) == words


@pytest.mark.parametrize(
    ("before", "after"), [({"x": 1}, {"x": True}), ({"x": [0]}, {"x": [False]}), ({"x": {"y": True}}, {"x": {"y": 1}})]
)
def test_a_number_that_becomes_true_or_false_is_a_change(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert changes(before, after)
    assert changes(before, before) == {}
