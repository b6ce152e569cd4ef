"""Values of a chart from Secrets and ConfigMaps: their order, and that no text of a Secret is shown anywhere."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest

from provisioner.errors import BadBundle, BadConfig
from provisioner.render import Target, looked_up, values_object, wanted_values
from provisioner.render.helm.stand_ins import MAX_COMPARISONS, list_comparisons
from provisioner.values import Content, JsonObject
from tests.support.provisioner.charts import PASSWORD, SERVED, chart, coded, config_map, rendered

# Helm 3 is given the same values, and what it renders is looked through by the same code: it is left to the long tests.
pytestmark = [
    pytest.mark.usefixtures("each_helm", "kept_engine"),
    pytest.mark.parametrize(
        "helm_version",
        [4, pytest.param(3, marks=[pytest.mark.controlplane, pytest.mark.thorough])],
        ids=lambda version: f"Helm {version}",
        indirect=True,
        scope="module",
    ),
]

SECRET, MAP = {"kind": "Secret", "name": "db"}, {"kind": "ConfigMap", "name": "settings"}


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


def a_copy(text: str, part: str = "stringData") -> dict[str, str]:
    return {"templates__s": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: copy}}\n{part}:\n  p: {text}\n"}


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("{{ .Values.auth.password | quote }}", 'a"b\\ c', 'a"b\\ c'),
        ("db://{{ .Values.auth.password | urlquery }}@db", "plain123", "db://plain123@db"),
        ("|\n    {{ .Values.auth | toJson }}", "plain123", '{"password":"plain123"}\n'),
        ("|\n{{ .Values.auth.password | indent 4 }}", "one\ntwo", "one\ntwo\n"),
        ("{{ .Values.auth.password | b64enc | b64dec }}", PASSWORD, PASSWORD),
        ("{{ .Values.auth.password }}", "12345", "12345"),
        ('{{ .Values.auth.password | default "x" | required "none" | squote }}', PASSWORD, PASSWORD),
        ("{{ randAlphaNum 12 }}:{{ .Values.auth.password }}", PASSWORD, None),
    ],
    ids=["quote", "urlquery", "toJson", "indent", "coded", "number", "default", "beside what is made up"],
)
def test_what_copies_a_text_as_it_is_is_right(text: str, value: str, expected: str | None) -> None:
    given = (SECRET, an_object("Secret", json.dumps({"auth": {"password": value}})))
    copied = body_of(content_of(a_copy(text), given), "Secret")["stringData"]["p"]
    assert copied == expected or (expected is None and copied.endswith(f":{value}"))


def test_a_name_with_a_checksum_over_a_text_is_that_of_the_mark_and_taken() -> None:
    name = "run-{{ .Values | toJson | sha256sum | trunc 8 }}"
    volumes = f"[{{secret: {{secretName: '{name}'}}}}]"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: '{name}'}}\nspec: {{volumes: {volumes}}}\n"
    contents = [content_of({"templates__p": pod}, IN_SECRET, version=version) for version in ("1", "1", "2")]
    names = [body_of(content, "Pod")["metadata"]["name"] for content in contents]
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize(
    ("templates", "value", "words"),
    [
        (a_copy("{{ .Values.auth.password | sha256sum }}"), PASSWORD, r"computes stringData\.p of Secret copy from a"),
        (a_copy("{{ .Values.auth.password | sha256sum | b64enc }}", "data"), PASSWORD, r"computes data\.p of"),
        (a_copy('{{ htpasswd "me" .Values.auth.password | squote }}'), PASSWORD, "may be made of a value of"),
        (a_copy('{{ encryptAES "key" .Values.auth.password }}'), PASSWORD, "may be made of a value of"),
        (a_copy("db://{{ .Values.auth.password | urlquery }}@db"), "a/b?c", r"computes stringData\.p"),
        (a_copy("|\n    {{ .Values.auth | toJson }}"), 'a"b', r"computes stringData\.p"),
        (a_copy("|\n    {{ .Values.auth | toYaml | nindent 4 }}"), "12345", r"computes stringData\.p"),
        (a_copy("{{ .Values.auth.password | trunc 8 }}"), PASSWORD, r"computes stringData\.p"),
        (a_copy("{{ .Values.auth.password | trunc 63 }}"), "x" * 70, r"computes stringData\.p"),
        (a_copy("{{ .Values.auth.password | lower }}"), PASSWORD, r"computes stringData\.p"),
        (a_copy('{{ .Values.auth.password | replace "," ";" }}'), "a,b", r"computes stringData\.p"),
        (a_copy('"{{ .Values.auth.password }}"'), 'a"b', "cannot be rendered with a text of their length and punctuation"),
        (
            a_copy('{{ if contains "@" .Values.auth.password }}{{ fail .Values.auth.password }}{{ end }}a'),
            "p@ss-w!rd",
            "cannot be rendered with a text of their length and punctuation",
        ),
        ({"templates__m": config_map("len .Values.auth.password")}, PASSWORD, r"computes data\.text of ConfigMap made"),
        (
            {"templates__m": '{{ if gt .Values.auth.password "a" }}' + config_map("1") + "{{ end }}"},
            PASSWORD,
            "decides by a value of Secret home/db",
        ),
    ],
    ids=["hash", "hash in data", "htpasswd", "encryptAES", "urlquery", "toJson", "toYaml", "trunc", "trunc of long",
         "lower", "replace", "quotes", "fail", "len", "order"],
)  # fmt: skip
def test_what_would_be_computed_of_a_mark_is_refused_and_named(
    templates: Mapping[str, str], value: str, words: str
) -> None:
    given = (SECRET, an_object("Secret", json.dumps({"auth": {"password": value}})))
    with pytest.raises(BadBundle, match=words) as caught:
        content_of(templates, given)
    assert "into the Secret, too" in str(caught.value)
    assert value not in caught.value.in_full
    assert caught.value.server_words == "", "Helm quotes the stand-in, which has the punctuation of the value"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('{{ if eq .Values.auth.type "ldap" }}a{{ end }}x', ("auth.type in templates/s.yaml:5",)),
        ('{{ $t := .Values.auth.type }}{{ if contains "l" $t }}a{{ end }}x', ("auth.type in templates/s.yaml:5",)),
        ('{{ if ne .Values.auth.type "" }}a{{ end }}x', ()),
        ("{{ if .Values.auth.type }}a{{ end }}x", ()),
    ],
    ids=["path", "variable", "empty", "there"],
)
def test_a_comparison_with_a_text_of_a_secret_is_found(text: str, places: tuple[str, ...]) -> None:
    content = content_of(a_copy(text), (SECRET, an_object("Secret", "auth: {type: ldap}")))
    assert [lookup.compared for lookup in content.lookups] == [places]


def test_comparisons_are_looked_for_in_bounded_time_and_only_the_first_are_named() -> None:
    marks = [f"mark-{number}" for number in range(20_000)]
    values = {"auth": {f"k{number}": mark for number, mark in enumerate(marks)}}
    files = {
        "templates/a.yaml": b"{{ a }}" * 100_000 + b'\n{{ if eq .Values.auth.k7 "x" }}',
        "templates/b.yaml": b"".join(b"{{ len .Values.auth.k%d }}" % number for number in range(20_000)),
    }
    began = time.process_time()
    found = list_comparisons(files, values, set(marks))
    assert time.process_time() - began < 10
    assert (found[0], len(found)) == ("auth.k7 in templates/a.yaml:2", MAX_COMPARISONS)


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
