"""From the words of a spec to sources: ours, and those of plug-ins, which see no Secret."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from approvals.bundle_spec import parse_spec
from approvals.models import Cluster
from approvals.steps.sources import read_values, sources_of
from provisioner.errors import BadSource, SourceUnavailable
from provisioner.plugins import PluginGroup
from provisioner.render.helm.values_from import wanted_values
from provisioner.source import PluginSource
from provisioner.values import ObjectRef
from tests.support.plugins import PluginPath

SECRET = {"auth": {"secret": {"name": "pull", "namespace": "ci"}}}


@pytest.fixture
def deck(plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {PluginGroup.SOURCES: {"deck": "cards:fetch"}}, "")


def spec(**source: Any) -> dict[str, Any]:
    return {"installNamespace": "shop", "sources": [source]}


def read(ref: ObjectRef) -> NoReturn:
    raise AssertionError(f"{ref} was read")


def test_the_source_of_a_plugin_has_the_parameters_and_the_destination(deck: None) -> None:
    asked = spec(kind="deck", parameters={"suit": "cups"}, destination="below")
    assert sources_of(parse_spec(asked), read) == [PluginSource("deck", {"suit": "cups"}, "below")]
    assert sources_of(parse_spec(spec(kind="deck")), read) == [PluginSource("deck")]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param({"parameters": SECRET}, id="in its parameters"),
        pytest.param(SECRET, id="beside its kind"),
        pytest.param({"deck": SECRET}, id="in a field of its name"),
        pytest.param({"git": SECRET, "parameters": {"secret": {"name": "pull"}}}, id="in the field of another kind"),
    ],
)
def test_S08_no_secret_that_a_plugins_source_names_is_read_or_asked_about(source: dict[str, Any], deck: None) -> None:
    asked = spec(kind="deck", **source)
    assert parse_spec(asked).reads() == []
    assert isinstance(sources_of(parse_spec(asked), read)[0], PluginSource)


def test_a_kind_that_is_not_known_is_named_beside_those_that_are(deck: None) -> None:
    words = r"spec.sources\[0\].kind is 'bucket', .*expected one of image, git, http, configMap, catalog, deck"
    with pytest.raises(BadSource, match=words):
        sources_of(parse_spec(spec(kind="bucket")), read)


def test_the_files_of_this_machine_are_no_kind_of_a_deployment() -> None:
    with pytest.raises(BadSource, match="kind is 'local'"):
        sources_of(parse_spec(spec(kind="local", parameters={"path": "/etc"})), read)


def test_parameters_that_are_no_mapping_are_refused(deck: None) -> None:
    with pytest.raises(BadSource, match=r"spec.sources\[0\].parameters is a list; expected a mapping"):
        sources_of(parse_spec(spec(kind="deck", parameters=[1])), read)


def test_an_object_of_values_and_a_key_that_are_missing_are_told_apart() -> None:
    (wanted,) = wanted_values({"valuesFrom": [{"kind": "Secret", "name": "db"}]}, "shop")
    for body, words in (
        (None, "Secret shop/db does not exist"),
        ({"data": {}}, "Secret shop/db has no key values.yaml"),
    ):
        with pytest.raises(SourceUnavailable, match=rf"{words}; spec.config.valuesFrom\[0\] names it"):
            read_values(wanted, Cluster(), lambda _, body=body: body)
