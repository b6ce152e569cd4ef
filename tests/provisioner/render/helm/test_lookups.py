"""What a chart may look up, what it is told, and that a value of a Secret goes nowhere but into Secrets."""

from __future__ import annotations

import base64
import cProfile
import gc
import pstats
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from provisioner.errors import BadBundle, BadConfig, BundleTooLarge, InvalidManifest
from provisioner.render import Target, looked_up, wanted_lookups
from provisioner.render.helm import lookups
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.objects import Found
from provisioner.render.targets import LookedUp
from provisioner.values import Content, JsonObject, ObjectRef
from tests.support.provisioner.charts import PASSWORD, SERVED, chart, coded, config_map, rendered, texts

pytestmark = pytest.mark.usefixtures("each_helm", "kept_engine")

GET = '(lookup "v1" "Secret" "home" "db")'
NAMED = [{"kind": "Secret", "name": "db"}]


def secret(name: str = "db", **data: str) -> JsonObject:
    last = {"kubectl.kubernetes.io/last-applied-configuration": PASSWORD}
    metadata = {"name": name, "namespace": "home", "annotations": last, "managedFields": [{"manager": "x"}]}
    metadata |= {"labels": {"app": "db"}, "uid": "u-1", "resourceVersion": "7", "ownerReferences": [{"name": "x"}]}
    body = {"metadata": metadata, "data": {key: coded(value) for key, value in data.items()}}
    return {**body, "apiVersion": "v1", "kind": "Secret", "type": "Opaque"}


def made_of(
    templates: Mapping[str, str], named: Sequence[Mapping[str, Any]] = NAMED, **given: JsonObject | None
) -> Content:
    config = {"lookup": list(named)}
    refs = wanted_lookups(config, "home") or ()
    found = {"db": secret(password=PASSWORD), **given}
    target = Target("v1.36.3", SERVED, lookups=looked_up(refs, lambda ref: found.get(ref.name)))
    return rendered(chart(**templates), config, target=target)


def copy_of(data: str, name: str = "copy", key: str = "data", more: str = "") -> dict[str, str]:
    metadata = f"{{name: {name}{more}}}"
    return {"templates__s": f"apiVersion: v1\nkind: Secret\nmetadata: {metadata}\n{key}: {data}\n"}


def secret_in(content: Content, name: str = "copy") -> Any:
    return next(one.body for one in content.manifests if one.ref.name == name and one.ref.kind == "Secret")


@pytest.mark.parametrize(
    ("key", "data", "expected"),
    [
        ("data", f'{{p: {{{{ index {GET}.data "password" }}}}}}', {"p": coded(PASSWORD)}),
        (
            "data",
            f'{{p: {{{{ printf "a:%s;" ({GET}.data.password | b64dec) | b64enc }}}}}}',
            {"p": coded(f"a:{PASSWORD};")},
        ),
        ("data", f"{{{{ {GET}.data | toJson }}}}", {"password": coded(PASSWORD)}),
        ("stringData", f"{{p: 'x-{{{{ {GET}.data.password | b64dec }}}}'}}", {"p": f"x-{PASSWORD}"}),
    ],
    ids=["as it is", "within another text", "all of them", "as text"],
)
def test_a_value_of_a_secret_goes_into_a_secret_and_is_told(key: str, data: str, expected: dict[str, str]) -> None:
    found = made_of(copy_of(data, key=key))
    assert secret_in(found)[key] == expected
    (told,) = found.lookups
    assert (str(told.ref), told.copies) == ("Secret home/db", ("copy",))
    assert told.keys == tuple(f"copy/{name}" for name in expected)
    assert PASSWORD not in str(told.answer), "what is recorded has marks"
    assert coded(PASSWORD) not in str(told.answer)


def test_S38_of_a_secret_a_chart_is_told_nothing_that_holds_or_tells_values() -> None:
    see = f"{GET} | toJson"
    with pytest.raises(BadBundle, match="holds a value of Secret home/db, where") as caught:
        made_of({"templates__a": config_map(see)})
    assert PASSWORD not in str(caught.value)
    (seen,) = [one.answer for one in made_of({}).lookups]
    assert seen is not None
    assert seen["metadata"] == {"name": "db", "namespace": "home", "labels": {"app": "db"}}
    assert seen.keys() == {"apiVersion", "kind", "type", "metadata", "data"}


@pytest.mark.parametrize(
    "template",
    [
        config_map(f"{GET}.data.password"),
        config_map(f"{GET}.data.password | b64dec"),
        config_map(f'printf "ab%s" ({GET}.data.password | b64dec) | b64enc'),
        config_map("1", annotations=f"{{a: '{{{{ {GET}.data.password }}}}'}}"),
        copy_of("{a: YQ==}", more=f", annotations: {{a: '{{{{ {GET}.data.password | b64dec }}}}'}}")["templates__s"],
        copy_of(f"\n  {{{{ {GET}.data.password | b64dec }}}}: YQ==")["templates__s"],
        f"apiVersion: v1\nkind: List\nitems: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: l}}, data: {{a: '{{{{ {GET}.data.password }}}}'}}}}]\n",
        f"apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{a: ['{{{{ {GET}.data.password }}}}']}}\n",
    ],
    ids=[
        "coded",
        "plain",
        "moved",
        "annotation",
        "annotation of a Secret",
        "key of a Secret",
        "in a List",
        "in a list",
    ],
)
def test_S27_a_value_that_everybody_could_read_is_refused(template: str) -> None:
    with pytest.raises(
        BadBundle, match=r"the chart: .*everybody could read it; it may only go into data or stringData"
    ):
        made_of({"templates__a": template})


def test_what_is_encoded_twice_cannot_be_put_there_and_is_refused() -> None:
    login = f'printf "{{\\"auth\\": \\"%s\\"}}" (printf "u:%s" ({GET}.data.password | b64dec) | b64enc) | b64enc'
    with pytest.raises(InvalidManifest, match="encodes a value of a Secret once more"):
        made_of(copy_of(f"{{p: {{{{ {login} }}}}}}"))


def test_what_is_computed_of_a_value_that_was_looked_up_is_refused_and_named() -> None:
    assert secret_in(made_of(copy_of(f"{{p: {{{{ {GET}.data.password | b64dec | b64enc }}}}}}")))
    with pytest.raises(BadBundle, match=r"computes data\.p of Secret copy from a value of Secret home/db"):
        made_of(copy_of(f"{{p: {{{{ {GET}.data.password | b64dec | sha256sum | b64enc }}}}}}"))


def test_bytes_that_are_no_text_do_not_go_into_string_data() -> None:
    odd = {**secret(), "data": {"password": base64.b64encode(b"\xff\xfe").decode()}}
    with pytest.raises(InvalidManifest, match="that is no text into stringData; use data"):
        made_of(copy_of(f"{{p: '{{{{ {GET}.data.password | b64dec }}}}'}}", key="stringData"), db=odd)


def test_other_objects_are_told_as_they_are_and_what_is_not_there_is_nothing() -> None:
    see = (
        'print (lookup "v1" "ConfigMap" "other" "c").data.a " " (len (lookup "v1" "Namespace" "" "gone")) " "'
        ' (lookup "apps/v1" "Deployment" "home" "d").spec.replicas " " (lookup "v1" "Node" "ignored" "n").kind'
    )
    named = [
        {"kind": "ConfigMap", "name": "c", "namespace": "other"},
        {"kind": "Namespace", "name": "gone"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        {"kind": "Node", "name": "n"},
    ]
    given: dict[str, JsonObject | None] = {
        "c": {"metadata": {"name": "c"}, "data": {"a": "told"}}, "d": {"metadata": {}, "spec": {"replicas": 3}}, "n": {}
    }  # fmt: skip
    found = made_of({"templates__a": config_map(see)}, named, **given)
    assert texts(found)["made"] == "told 0 3 Node"
    assert [(str(one.ref), bool(one.digest)) for one in found.lookups] == [
        ("ConfigMap other/c", True), ("Namespace gone", False), ("Deployment.apps home/d", True), ("Node n", True)
    ]  # fmt: skip


def test_the_same_answers_give_the_same_content_and_other_values_another_one() -> None:
    one, again = (made_of(copy_of(f"{{{{ {GET}.data | toJson }}}}")) for _ in range(2))
    assert (one.digest, one.lookups) == (again.digest, again.lookups)
    changed = made_of(copy_of(f"{{{{ {GET}.data | toJson }}}}"), db=secret(password="other"))
    assert changed.digest != one.digest
    assert changed.lookups == one.lookups, "of the value itself nothing is told"
    more = made_of(copy_of(f"{{{{ {GET}.data | toJson }}}}"), db=secret(password=PASSWORD, user="x"))
    assert more.lookups[0].digest != one.lookups[0].digest, "its keys are"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('lookup "v1" "Secret" "home" "other"', "config.lookup does not name Secret home/other"),
        ('lookup "v1" "Secret" "elsewhere" "db"', "config.lookup does not name Secret elsewhere/db"),
        (
            'lookup "v1" "Secret" "home" ""',
            "a lookup of every Secret is not answered: config.lookup names single objects",
        ),
        ('lookup "v1" "ConfigMap" "home" "db"', "config.lookup does not name ConfigMap home/db"),
        ('lookup "batch/v1" "Job" "home" "db"', "config.lookup names nothing in batch/v1"),
        ('lookup "v1" "Secret" "home" "../../x/Secret/db"', "may not contain '/'"),
    ],
    ids=["other", "elsewhere", "list", "kind", "version", "path"],
)
def test_what_is_not_named_is_refused_in_words(call: str, words: str) -> None:
    with pytest.raises(BadBundle) as caught:
        made_of({"templates__a": config_map(call)})
    assert words in caught.value.server_words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "expected a list of objects with kind and name"),
        ([1], "expected a list of objects"),
        ([{"kind": "Secret"}], r"config.lookup\[0\] has no name"),
        ([{"kind": "Secret", "name": 1}], r"config.lookup\[0\]: expected a list"),
        ([{"kind": "Secret", "name": "a", "labels": "x"}], r"config.lookup\[0\] has labels"),
        ([{"apiVersion": "acme.org/v1", "kind": "Certificate", "name": "a"}], "is no kind of Kubernetes itself"),
        ([{"kind": "secret", "name": "a"}], "'secret' in 'v1' is no kind; expected 'Secret', as Kubernetes spells it"),
        ([{"kind": "Secret", "name": str(number)} for number in range(51)], "names 51 objects; the limit is 50"),
    ],
    ids=["switch", "numbers", "no name", "no text", "labels", "custom", "spelling", "many"],
)
def test_what_names_no_objects_is_refused(value: Any, words: str) -> None:
    with pytest.raises(BadConfig, match=words):
        wanted_lookups({"lookup": value}, "home")


def test_answers_are_bounded_and_a_cluster_is_needed() -> None:
    refs = wanted_lookups({"lookup": NAMED}, "home") or ()
    with pytest.raises(BundleTooLarge, match=r"the objects of config.lookup are more than 1024 KiB together"):
        looked_up(refs, lambda ref: secret(password="x" * lookups.MAX_BYTES))
    with pytest.raises(BadConfig, match="no cluster was asked"):
        rendered(chart(), {"lookup": NAMED}, target=Target("v1.36.3", SERVED))


def test_with_lookups_a_chart_sees_the_cluster_and_the_charts_below_it_as_without() -> None:
    see = (
        'print .Capabilities.KubeVersion.Version (.Capabilities.APIVersions.Has "batch/v1") '
        f".Release.IsUpgrade (len {GET}.data)"
    )
    assert texts(made_of({"templates__a": config_map(see)}))["made"] == "v1.36.3false false 1"


def test_a_mark_of_an_object_that_is_not_named_is_only_a_text() -> None:
    (known,) = looked_up([ObjectRef("", "v1", "Secret", "home", "db")], lambda ref: secret(password=PASSWORD))
    (mark,) = known.marks
    found = rendered(chart(templates__a=config_map(f'"{mark}"')), target=replace(Target("v1.36.3", SERVED)))
    assert texts(found)["made"] == mark


def told(keys: int) -> LookedUp:
    """A Secret of that many keys, as a chart is told of it."""
    values = {f"k{number}": "v" for number in range(keys)}
    (known,) = looked_up([ObjectRef("", "v1", "Secret", "home", "db")], lambda ref: secret(**values))
    return known


def calls(known: LookedUp, more: Mapping[str, str]) -> int:
    """What it takes to look through a chart of such texts, beside what one of no text takes."""
    empty, marked = (Found(body, "a.yaml") for body in ({}, {"kind": "ConfigMap", "data": dict(more)}))
    counts = []
    for found in (empty, marked):
        profile = cProfile.Profile()
        gc.disable()  # what others have called when it collects would be counted
        try:
            profile.runcall(lookups.filled, [found], [known], YamlMeter(YamlLimits()))
        finally:
            gc.enable()
        counts.append(int(pstats.Stats(profile).total_calls))  # type: ignore[attr-defined] # typeshed leaves it out
    return counts[1] - counts[0]


@pytest.mark.parametrize("text", ["plain", f"pratiqueMark{'0' * 32}"], ids=["plain", "nearly a mark"])
def test_S26_a_text_is_searched_alike_however_many_keys_a_secret_has(text: str) -> None:
    texts = {f"t{number}": text for number in range(100)}
    many, one = (calls(told(keys), texts) for keys in (1000, 1))
    assert many == one


def test_S26_few_marks_do_not_make_more_than_a_bundle_may_be() -> None:
    (known,) = looked_up([ObjectRef("", "v1", "Secret", "home", "db")], lambda ref: secret(big="x" * 500_000))
    marks = "".join(known.marks) * 100
    copies = Found({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": marks}}, "a.yaml")
    with pytest.raises(BundleTooLarge, match=r"a\.yaml: more than 20000000 characters"):
        lookups.filled([copies], [known], YamlMeter(YamlLimits(max_characters=20_000_000)))
