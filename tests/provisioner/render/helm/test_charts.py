"""What a chart is given, what it sees, and what is refused."""

from __future__ import annotations

import re

import pytest
import yaml

from provisioner.cluster.annotations import keep_words
from provisioner.errors import BadBundle, BadConfig, InvalidManifest
from provisioner.render import Target
from provisioner.render.helm.remedies import values_to_set
from tests.support.provisioner.charts import CHART, SERVED, chart, config_map, packed, rendered, texts

pytestmark = pytest.mark.usefixtures("each_helm", "kept_engine")

NEEDS_SUB = CHART + b"dependencies: [{name: sub, version: 1.0.0}]\n"
SUB = {"Chart.yaml": b"apiVersion: v2\nname: sub\nversion: 1.0.0\n"}


def test_values_of_the_chart_of_files_and_of_the_spec_are_laid_over_each_other() -> None:
    files = chart(one=b"text: unused", templates__two=config_map("print .Values.a .Values.b .Values.c"))
    files |= {"values.yaml": b"a: 1\nb: 1\nc: 1\n", "more.yaml": b"b: 2\nc: 2\n"}
    found = rendered(files, {"valuesFiles": ["more.yaml"], "values": {"c": 3}})
    assert texts(found)["made"] == "1 2 3"


@pytest.mark.parametrize("name", ["helm", "helm+v3"])
def test_a_chart_lies_at_the_root_or_in_the_one_folder_there(name: str) -> None:
    at_root = rendered(chart(), name=name)
    inside = rendered({f"shop/{path}": data for path, data in chart().items()}, name=name)
    assert [one.body for one in at_root.manifests] == [one.body for one in inside.manifests]
    (one,) = at_root.manifests
    assert (one.ref.name, one.ref.namespace, one.body["data"]) == ("shop-one", "home", {"text": "own"})


def test_releases_of_other_names_lie_side_by_side() -> None:
    names = [set(texts(rendered(chart(), {"releaseName": name}))) for name in ("a", "b")]
    assert names == [{"a-one"}, {"b-one"}]


def test_a_chart_sees_the_version_and_exactly_the_apis_of_the_cluster(each_helm: int) -> None:
    see = (
        'print .Capabilities.KubeVersion.GitVersion " " (.Capabilities.APIVersions.Has "apps/v1/Deployment")'
        ' " " (.Capabilities.APIVersions.Has "batch/v1") " " (len .Capabilities.APIVersions)'
    )
    sub = {"charts/sub/Chart.yaml": SUB["Chart.yaml"], "charts/sub/templates/sub.yaml": config_map(see, "sub").encode()}
    files = chart(templates__see=config_map(see)) | sub | {"Chart.yaml": NEEDS_SUB}
    found = texts(rendered(files, target=Target("v1.30.2", SERVED)))
    assert (found["made"], found["sub"]) == ("v1.30.2 true false 4",) * 2
    alone = {4: "v1.36.0 ", 3: "v1.37.0 "}[each_helm]
    assert texts(rendered(files))["made"].startswith(alone), "without a cluster, as helm template"


def test_the_version_is_printed_as_helm_prints_it() -> None:
    see = config_map("1").replace("{{ 1 | quote }}", "{{ .Capabilities.KubeVersion }}")
    assert texts(rendered(chart(templates__a=see), target=Target("v1.30.2", SERVED)))["made"] == "v1.30.2"


@pytest.mark.parametrize(
    ("call", "is_taken", "hour"),
    [
        ('dateInZone "15" (toDate "2006" "2000") "UTC"', True, "00"),
        ('print (dateInZone "15" (toDate "2006" (printf "2%s" "000")) "UTC")', True, "00"),
        ('dateInZone "15" (toDate "2006" "2000") "Asia/Tokyo"', False, "09"),
        ('dateInZone "15" (toDate "2006" "2000") (coalesce .Values.zone "UTC")', False, "00"),
        (
            'print (dateInZone "15" (toDate "2006" "2000") "UTC") (date_in_zone "15" (now) "Asia/Tokyo" | len)',
            False,
            "002",
        ),
        ('"Asia/Tokyo" | date_in_zone "15" (toDate "2006" "2000")', False, "09"),
    ],
)
def test_no_time_zone_is_silently_taken_for_utc(call: str, is_taken: bool, hour: str, each_helm: int) -> None:
    """No file can be read while a chart is rendered, so Helm 4 finds none, and would say nothing; Helm 3 has them."""
    files = chart(templates__made=config_map(call))
    if is_taken or each_helm == 3:
        assert texts(rendered(files))["made"] == hour
        return
    with pytest.raises(BadBundle, match='another time zone than "UTC"'):
        rendered(files)


def test_a_chart_that_renders_nothing_is_refused_with_what_to_do() -> None:
    files = chart(templates__one="{{ if .Values.apps }}{}{{ end }}")
    with pytest.raises(BadBundle, match=r"no objects with these values; name in spec\.config\.values"):
        rendered(files)


def test_a_template_sees_the_same_cluster_through_the_charts_below_it() -> None:
    see = '.Subcharts.sub.Capabilities.APIVersions.Has "batch/v1"'
    sub = {"charts/sub/Chart.yaml": SUB["Chart.yaml"], "charts/sub/templates/z.yaml": b"# nothing"}
    files = chart(templates__a=config_map(see)) | sub | {"Chart.yaml": NEEDS_SUB}
    assert texts(rendered(files, target=Target("v1.30.2", SERVED)))["made"] == "false"


@pytest.mark.parametrize(("is_upgrade", "expected"), [(False, "true false 1"), (True, "false true 2")])
def test_a_chart_sees_whether_it_is_an_upgrade(*, is_upgrade: bool, expected: str) -> None:
    see = 'print .Release.IsInstall " " .Release.IsUpgrade " " .Release.Revision'
    assert texts(rendered(chart(templates__a=config_map(see)), target=Target("", (), is_upgrade)))["made"] == expected


def test_lookup_finds_nothing() -> None:
    see = 'len (lookup "v1" "Secret" "kube-system" "")'
    assert texts(rendered(chart(templates__a=config_map(see)), target=Target("v1.36.3", SERVED)))["made"] == "0"


def test_values_have_to_meet_the_schema() -> None:
    files = chart() | {"values.schema.json": b'{"properties": {"text": {"type": "string"}}}'}
    assert texts(rendered(files)) == {"shop-one": "own"}
    with pytest.raises(BadBundle, match=r"values\.schema\.json refuses its values at /text$") as caught:
        rendered(files, {"values": {"text": 1}})
    assert "at '/text': got number, want string" in caught.value.server_words


@pytest.mark.parametrize(
    ("template", "place"),
    [
        ('\n{{ fail (printf "not %s" .Values.key) }}', "templates/a.yaml:2: Helm"),
        ('{{ required .Values.key "" }}', "templates/a.yaml:1: Helm"),
        ("{{ include .Values.key . }}", "templates/a.yaml:1: Helm"),
        ("a: 1\nb: {{ .Values.key }}", "templates/a.yaml:2: what this template renders"),
    ],
    ids=["fail", "required", "an error of a function", "an alias"],
)
def test_S27_words_of_a_failing_chart_that_quote_values_are_told_apart(template: str, place: str) -> None:
    with pytest.raises(BadBundle) as caught:
        rendered(chart(templates__a=template), {"values": {"key": "*swordfish"}})
    assert place in str(caught.value)
    assert ("swordfish" in str(caught.value), "swordfish" in caught.value.server_words) == (False, True)


@pytest.mark.parametrize("length", [12, 2000], ids=["short", "cut off"])
def test_S27_a_credential_that_the_schema_refuses_is_not_in_the_words(length: int) -> None:
    schema = b'{"properties": {"db": {"properties": {"password": {"pattern": "^z"}, "mode": {"pattern": "^z"}}}}}'
    values = {"db": {"password": "it's" + "x" * length, "mode": "fast"}}
    with pytest.raises(BadBundle) as caught:
        rendered(chart() | {"values.schema.json": schema}, {"values": values})
    assert ("at '/db/mode': 'fast' does not match pattern" in caught.value.server_words) or length > 1000
    assert "at '/db/password': hidden" in caught.value.server_words
    assert "xxx" not in caught.value.in_full


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:1/x.json", "https://example.com/x", "file:///etc/passwd", "x.json"]
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_schema_refers_to_nothing_outside(target: str, *, is_packed: bool) -> None:
    schema = f'{{"properties": {{"text": {{"$ref": "{target}"}}}}}}'.encode()
    sub = {**SUB, "values.schema.json": schema}
    files = {"charts/sub-1.0.0.tgz": packed(sub, "sub")} if is_packed else {"values.schema.json": schema}
    with pytest.raises(BadBundle, match="which is not in the chart"):
        rendered(chart() | {"Chart.yaml": NEEDS_SUB if is_packed else CHART} | files)


def test_packed_and_unpacked_subcharts_render_alike() -> None:
    sub = {**SUB, "templates/sub.yaml": config_map(".Release.Name", "sub").encode()}
    base = chart() | {"Chart.yaml": NEEDS_SUB}
    as_folder = rendered(base | {f"charts/sub/{path}": data for path, data in sub.items()})
    as_archive = rendered(base | {"charts/sub-1.0.0.tgz": packed(sub, "sub")})
    assert texts(as_folder) == {"shop-one": "own", "sub": "shop"}
    assert as_folder.digest == as_archive.digest


def test_missing_dependencies_are_named() -> None:
    with pytest.raises(BadBundle, match="lacks the dependencies sub; run `helm dependency build`"):
        rendered(chart() | {"Chart.yaml": NEEDS_SUB})


def test_a_library_has_nothing_to_install() -> None:
    with pytest.raises(BadBundle, match="it is a library chart"):
        rendered(chart() | {"Chart.yaml": CHART + b"type: library\n"})


@pytest.mark.parametrize(("wanted", "version"), [(">=1.30.0", "v1.30.2-gke.100"), ("^1.29.0", "v1.30.2+k3s1")])
def test_a_version_of_kubernetes_that_fits(wanted: str, version: str) -> None:
    files = chart() | {"Chart.yaml": CHART + f"kubeVersion: '{wanted}'\n".encode()}
    assert texts(rendered(files, target=Target(version, SERVED))) == {"shop-one": "own"}


def test_a_version_of_kubernetes_that_does_not_fit() -> None:
    files = chart() | {"Chart.yaml": CHART + b"kubeVersion: '>=1.31.0'\n"}
    with pytest.raises(BadBundle, match=r"it needs Kubernetes >=1\.31\.0, but the cluster has v1\.30\.2"):
        rendered(files, target=Target("v1.30.2", SERVED))


HELPER = '{{ define "shop.key" }}{{ if .Values.auth.key }}{{ .Values.auth.key }}{{ else }}{{ randAlpha 9 }}{{ end }}{{ end }}'


def test_what_has_another_shape_each_time_is_refused_with_the_values_to_set() -> None:
    made_key = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {text: x, {{ include "shop.key" . }}: v}\n'
    files = chart(templates__made=made_key) | {
        "templates/_helpers.tpl": HELPER.encode(),
        "values.yaml": b"text: own\nauth: {key: '', other: ''}\n",
    }
    remedy = '{values: {auth: {key: "…"}}}'
    words = (
        rf"templates/made\.yaml renders differently each time .* Set in spec\.config: {re.escape(remedy)}, or switch"
    )
    with pytest.raises(BadBundle, match=words):
        rendered(files)
    assert texts(rendered(files, yaml.safe_load(remedy)))["a"] == "x"


@pytest.mark.parametrize(
    ("file", "template", "expected"),
    [
        ("templates/a.yaml", "{{ .Values.auth.key | default (randAlphaNum 5) }}", '{values: {auth: {key: "…"}}}'),
        ("templates/a.yaml", "{{ .Values.text }}{{ randAlphaNum 5 }}", ""),
        ("templates/a.yaml", "{{ .Values.auth.key }}" + "{{ 1 }}" * 9 + "{{ uuidv4 }}", ""),
        ("charts/db/templates/a.yaml", "{{ .Values.pw }}{{ genCA }}", ""),
        ("charts/db/templates/a.yaml", "{{ .Values.auth.pw }}{{ genCA 1 }}", '{values: {db: {auth: {pw: "…"}}}}'),
        ("charts/db/templates/a.yaml", "{{ .Values.global.pw }}{{ now }}", '{values: {global: {pw: "…"}}}'),
        ("templates/a.yaml", "{{" * 200_000 + "{{ define " * 50_000, ""),
    ],
    ids=["default", "has a value", "far away", "unknown", "of a subchart", "global", "without an end"],
)
def test_values_that_are_empty_beside_what_is_made_up_are_named(file: str, template: str, expected: str) -> None:
    values = {"text": "own", "auth": {"key": ""}, "global": {"pw": None}, "db": {"auth": {"pw": ""}}}
    assert values_to_set({file: template.encode()}, [file], values) == expected


MOVING = "apiVersion: v1\nkind: Pod\nmetadata: {name: 'x-{{ uuidv4 }}', annotations: {helm.sh/hook: %s}}\n"


@pytest.mark.parametrize("served", [SERVED, ()], ids=["with its own APIs", "without"])
def test_what_is_left_out_may_render_differently_each_time(served: tuple[str, ...]) -> None:
    files = chart(templates__a=MOVING % "test", templates__b=MOVING % "pre-install") | {
        "templates/c.yaml": config_map('.Capabilities.APIVersions.Has "batch/v1"', "has").encode()
    }
    found = rendered(files, target=Target("v1.30.2", served, is_upgrade=True))
    assert (texts(found), found.hooks) == ({"shop-one": "own", "has": "false"}, ())
    assert found.unused.paths == ("templates/a.yaml", "templates/b.yaml")
    installed = rendered(files, target=Target("v1.30.2", served, is_upgrade=False))
    assert [one.ref.name[:9] for one in installed.hooks] == ["x-made-up"]


def test_a_comment_that_moves_changes_nothing() -> None:
    moving = f"# {{{{ uuidv4 }}}}\n{config_map('1')}"
    assert texts(rendered(chart(templates__a=moving))) == {"shop-one": "own", "made": "1"}


def test_crds_are_content_and_come_first() -> None:
    crd = (
        b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x.io}\n"
        b"spec: {group: x.io, scope: Cluster, names: {kind: A, plural: as}}\n"
    )
    own = rendered(chart(crds__a=crd, templates__a="apiVersion: x.io/v1\nkind: A\nmetadata: {name: a}\n"))
    assert [str(one.ref.kind) for one in own.manifests] == ["CustomResourceDefinition", "A", "ConfigMap"]
    assert own.manifests[1].ref.namespace == ""
    assert [keep_words(one.body) for one in own.manifests] == ["core.rukpak.io/deletion-policy: Orphan", "", ""]


def test_other_sources_bring_values_and_manifests() -> None:
    more = {"more/extra.yaml": config_map("1").replace("{{ 1 | quote }}", "'{{ plain }}'").encode()}
    files = {f"chart/{path}": data for path, data in chart().items()} | more | {"values/v.yaml": b"text: theirs\n"}
    found = rendered(files, {"valuesFiles": ["values/v.yaml"]}, destinations=("chart", "more", "values"))
    assert texts(found) == {"shop-one": "theirs", "made": "{{ plain }}"}
    assert found.unused.count == 0


def test_ignored_files_are_not_rendered_and_said() -> None:
    files = chart(templates__dev=config_map("1"), ci__values="a: 1") | {".helmignore": b"# none\ntemplates/dev*\nci/\n"}
    found = rendered(files)
    assert texts(found) == {"shop-one": "own"}
    assert found.unused.paths == ("ci/values.yaml", "templates/dev.yaml")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"value": {}}, "config has value (did you mean values?); a chart takes values"),
        ({"values": "a: 1"}, "config.values is str; expected a mapping"),
        ({"valuesFiles": ["../a"]}, "no source has the file '../a'"),
        ({"valuesFiles": "a"}, "expected a list of paths"),
        ({"releaseName": "A"}, "the release name 'A'"),
        ({"releaseName": "a" * 54}, "at most 53"),
        ({"helmversion": 3}, "did you mean helmVersion?"),
        ({"helmVersion": "3"}, "config.helmVersion is '3'; expected the number 3 or 4"),
        ({"helmVersion": 3.0}, "config.helmVersion is '3.0'; expected the number 3 or 4"),
        ({"helmVersion": True}, "config.helmVersion is 'True'; expected the number"),
        ({"helmVersion": 2}, "expected the number 3 or 4"),
    ],
)
def test_a_config_that_no_chart_takes(config: dict[str, object], words: str) -> None:
    with pytest.raises(BadConfig, match=re.escape(words)):
        rendered(chart(), config)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param(("manifests/a.yaml", "metadata/annotations.yaml"), "but metadata/annotations.yaml: ", id="bundle"),
        pytest.param(("x/metadata/annotations.yaml",), "this is an operator bundle, whose format is", id="in a folder"),
        pytest.param(("manager", "etc/passwd"), "among 2 files, such as 'etc/passwd'", id="an operator's own image"),
        pytest.param(("a\u202e",), r"among 1 file, such as 'a\u202e'", id="a name that pretends"),
        pytest.param((), "and no other file", id="nothing"),
    ],
)
def test_what_is_no_chart_is_named_for_what_it_is(files: tuple[str, ...], words: str) -> None:
    with pytest.raises(BadBundle) as refused:
        rendered(dict.fromkeys(files, b"a: 1"))
    assert words in str(refused.value)


def test_no_chart_and_several() -> None:
    with pytest.raises(BadBundle, match=r"found no Chart\.yaml"):
        rendered({"a.yaml": b"a: 1"})
    two = {f"{name}/{path}": data for name in "ab" for path, data in chart().items()}
    with pytest.raises(BadBundle, match=r"several charts \(a, b\)"):
        rendered(two)


@pytest.mark.parametrize("name", ["NOTES.txt", "more-NOTES.txt"])
def test_notes_are_no_manifests(name: str) -> None:
    assert texts(rendered(chart() | {f"templates/{name}": b"Thank you for installing {{ .Release.Name }}"})) == {
        "shop-one": "own"
    }


LAST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n  text: |%s\n    a"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param(LAST % ("one", ""), {"one": "a\n"}, id="no line break at the end"),
        pytest.param(LAST % ("one", "") + "\n\n", {"one": "a\n"}, id="several"),
        pytest.param(LAST % ("one", "-"), {"one": "a"}, id="none is wanted"),
        pytest.param(LAST % ("one", "+") + "\n\n---\n" + LAST % ("two", "+"), {"one": "a\n", "two": "a\n"}, id="cut"),
        pytest.param("---" + LAST % ("one", "") + "\n---\n---\n# b\n---", {"one": "a\n"}, id="on the line of the cut"),
    ],
)
def test_a_text_at_the_end_of_a_document_ends_as_helm_ends_it(template: str, expected: dict[str, str]) -> None:
    assert texts(rendered(chart(templates__a=template))) == {"shop-one": "own", **expected}


def test_what_is_broken_is_said_with_its_line_in_the_whole_template() -> None:
    broken = config_map("1") + "\n\n---\n# two\nkind: ConfigMap\nkind: Secret\n"
    with pytest.raises(InvalidManifest, match=r"templates/a\.yaml:11: ") as caught:
        rendered(chart(templates__a=broken))
    assert str(caught.value).endswith("renders has a key twice, on line 10 with another value: remove one of them")
    assert "the key 'kind' is there twice" in caught.value.server_words


def test_of_a_value_that_is_there_twice_the_later_one_counts_as_for_helm() -> None:
    """In each file that it may be in; what Helm refuses of two values is refused before it is asked."""
    files = chart(more="unused", templates__a=config_map("print .Values.a .Values.b .Values.c") + "\nkind: ConfigMap\n")
    files |= {"values.yaml": b'a: 1\na: ""\nb:\nb: 2\n', "more.yaml": b"c: 3\nc: 3\n"}
    found = rendered(files, {"valuesFiles": ["more.yaml"]})
    assert (texts(found)["made"], found.values and found.values["a"]) == ("2 3", '""')
    repeated = [f"{one.effect} {one.file} {one.first} {one.line} {one.path}" for one in found.repeated]
    assert repeated == [
        "equal more.yaml 1 2 c",
        "equal templates/a.yaml 2 7 kind",
        "emptied values.yaml 1 2 a",
        "filled values.yaml 3 4 b",
    ]
    with pytest.raises(
        InvalidManifest, match=r"values\.yaml:2: the key 'a' is there twice, on line 1 with another value"
    ):
        rendered(files | {"values.yaml": b"a: {b: 1}\na: {c: 1}\n"})


def test_blanks_without_end_are_cut_at_once() -> None:
    assert texts(rendered(chart(templates__a='{{ repeat 3000000 "\\n" }}{{ repeat 3000000 " " }}\n---\n'))) == {
        "shop-one": "own"
    }
