"""Values of a chart from Secrets and ConfigMaps: their order, and that no text of a Secret is shown anywhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest

from provisioner.errors import BadBundle, BadConfig
from provisioner.render import Target, looked_up, values_object, wanted_values
from provisioner.values import Content, JsonObject
from tests.provisioner.render.helm.charts import SERVED, chart, config_map, rendered

pytestmark = pytest.mark.usefixtures("each_helm")

PASSWORD = "swordfish and chips"
SECRET, MAP = {"kind": "Secret", "name": "db"}, {"kind": "ConfigMap", "name": "settings"}


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def an_object(kind: str, text: str, key: str = "values.yaml") -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "data": {key: coded(text) if kind == "Secret" else text}}


def content_of(
    templates: Mapping[str, str], *given: tuple[Mapping[str, Any], JsonObject | None], version: str = "1", **config: Any
) -> Content:
    config = {"valuesFrom": [reference for reference, _ in given], **config}
    wanted = wanted_values(config, "home")
    objects = [values_object(one, body, version) for one, (_, body) in zip(wanted, given, strict=True)]
    return rendered(chart(**templates), config, target=Target("v1.36.3", SERVED, values_from=tuple(objects)))


def body_of(content: Content, kind: str) -> Any:
    return next(manifest.body for manifest in content.manifests if manifest.ref.kind == kind)


COPY = {
    "templates__s": (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: copy\n"
        "  annotations: {sum: '{{ .Values.auth.password | sha256sum }}'}\n"
        "stringData: {url: 'db://{{ .Values.auth.password }}@db'}\n"
        "data: {p: '{{ .Values.auth.password | b64enc }}'}\n"
    )
}
IN_SECRET = (SECRET, an_object("Secret", f"auth: {{password: {PASSWORD}}}"))


@pytest.mark.parametrize(
    "given",
    [
        IN_SECRET,
        (
            {**SECRET, "valuesKey": "p", "targetPath": "auth.password"},
            an_object("Secret", PASSWORD, "p"),
        ),
    ],
    ids=["a file of values", "one value"],
)
def test_a_text_of_a_secret_goes_into_secrets_and_is_shown_nowhere(given: tuple[Any, Any]) -> None:
    content = content_of(COPY, given)
    copy = body_of(content, "Secret")
    assert copy["stringData"] == {"url": f"db://{PASSWORD}@db"}
    assert copy["data"] == {"p": coded(PASSWORD)}
    assert (content.values or {})["auth.password"] == '"hidden"'
    (lookup,) = content.lookups
    assert (lookup.ref.name, lookup.copies) == ("db", ("copy",))
    shown = json.dumps([asdict(lookup), dict(content.values or {}), copy["metadata"]], default=str)
    assert PASSWORD not in shown
    assert coded(PASSWORD) not in shown


def test_what_is_computed_of_a_text_changes_with_it_and_tells_nothing_of_it() -> None:
    sums = [
        body_of(content_of(COPY, IN_SECRET, version=version), "Secret")["metadata"]["annotations"]["sum"]
        for version in ("1", "1", "2")
    ]
    assert sums[0] == sums[1] != sums[2]


@pytest.mark.parametrize(
    "template",
    [
        config_map(".Values.auth.password"),
        config_map(".Values.auth.password | b64enc"),
        config_map(".Values | toJson | b64enc"),
    ],
    ids=["as it is", "as base64", "within all values"],
)
def test_S38_a_text_of_a_secret_in_another_object_is_refused(template: str) -> None:
    with pytest.raises(BadBundle, match="holds a value of Secret home/db, where") as caught:
        content_of({"templates__m": template}, IN_SECRET)
    assert PASSWORD not in caught.value.in_full


def test_a_chart_that_fails_with_a_value_does_not_say_it() -> None:
    with pytest.raises(BadBundle) as caught:
        content_of({"templates__m": "{{ fail .Values.auth.password }}"}, IN_SECRET)
    assert PASSWORD not in caught.value.in_full


def test_later_values_win_and_those_of_the_spec_over_all() -> None:
    template = config_map('printf "%v %v %v %v %s" .Values.a .Values.b .Values.c .Values.d (kindOf .Values.on)')
    content = content_of(
        {"templates__m": template},
        (MAP, an_object("ConfigMap", "a: 1\nb: 1\nc: 1\nd: 1\n")),
        ({**MAP, "valuesKey": "more.yaml"}, an_object("ConfigMap", "b: 2\nc: 2\n", "more.yaml")),
        ({**MAP, "valuesKey": "on", "targetPath": "on"}, an_object("ConfigMap", "false", "on")),
        ({**MAP, "name": "none", "optional": True}, None),
        values={"c": 3},
    )
    assert body_of(content, "ConfigMap")["data"]["text"] == "1 2 3 1 bool"


@pytest.mark.parametrize(
    ("reference", "body", "words"),
    [
        (SECRET, None, "does not exist"),
        (SECRET, an_object("Secret", "x", "other"), "has no key values.yaml"),
        (SECRET, an_object("Secret", f"p: [{PASSWORD}"), "cannot be read as YAML"),
        (SECRET, an_object("Secret", PASSWORD), "is no mapping of values; to set one value with it, add targetPath"),
        (SECRET, an_object("Secret", "port: 5432"), "a value that is no text"),
        (SECRET, {"data": {"values.yaml": "%%%"}}, "expected|cannot be read"),
        ({"kind": "Pod", "name": "x"}, None, "expected the kind Secret or ConfigMap"),
        ({**SECRET, "path": "x"}, None, "it takes kind, name"),
        ({**SECRET, "targetPath": "a..b"}, None, "names with dots"),
        ({**SECRET, "targetPath": "a[0]"}, None, "names with dots"),
        (MAP, an_object("ConfigMap", "a: " + "x" * 1_100_000), "more than 1024 KiB"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_named_and_not_quoted(
    reference: dict[str, Any], body: JsonObject | None, words: str
) -> None:
    with pytest.raises(BadConfig, match=words) as caught:
        content_of(COPY, (reference, body))
    assert "swordfish" not in caught.value.in_full


def test_without_a_cluster_it_is_said_that_one_is_needed() -> None:
    with pytest.raises(BadConfig, match="no cluster was asked"):
        rendered(chart(**COPY), {"valuesFrom": [SECRET]})


def test_a_word_of_a_text_of_a_secret_and_a_made_up_value_is_refused() -> None:
    """The kept value would hold the mark of a text that is another one by now."""
    joined = COPY["templates__s"].replace("db://", "{{ randAlphaNum 8 }}")
    with pytest.raises(BadBundle, match="into one word"):
        content_of({"templates__s": joined}, IN_SECRET)


def test_nobody_can_tell_a_mark_by_what_everybody_knows() -> None:
    """A chart may make a login of one, as with htpasswd."""
    ref = wanted_values({"valuesFrom": [SECRET]}, "home")[0]
    held = replace(values_object(ref, IN_SECRET[1], "known"), seed="unknown")
    assert "known" not in repr(replace(held, version=""))
    sums = []
    for one in (held, replace(held, version="other"), replace(held, seed="another")):
        target = Target("v1.36.3", SERVED, values_from=(one,))
        content = rendered(chart(**COPY), {"valuesFrom": [SECRET]}, target=target)
        sums.append(body_of(content, "Secret")["metadata"]["annotations"]["sum"])
    assert sums[0] == sums[1] != sums[2]
    one, other = (looked_up([ref.ref], lambda _: {"data": {"p": coded(PASSWORD)}}, seed=seed)[0] for seed in ("a", "b"))
    assert not one.marks.keys() & other.marks.keys()
