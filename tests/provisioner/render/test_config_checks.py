"""What is said of a config whatever its content is: the path, what was found, what was expected and what is meant."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.errors import BadConfig
from provisioner.render import check_config, list_config_keys

PATCHES = "and every format patches, namespace, namePrefix, commonLabels, images"


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        pytest.param(
            "helm", {"valuesFrm": []}, "config has valuesFrm (did you mean valuesFrom?); a chart takes", id="key"
        ),
        pytest.param("helm+v3", {"Values": {}}, "config has Values (did you mean values?)", id="another case"),
        pytest.param("helm", {"values": [1]}, "config.values is list; expected a mapping", id="values"),
        pytest.param("helm", {"valuesFiles": "a"}, "config.valuesFiles: expected a list of paths", id="files"),
        pytest.param("helm", {"releaseName": "A_b"}, "the release name 'A_b': expected", id="release"),
        pytest.param(
            "helm",
            {"valuesFrom": [{"kind": "Secret", "nme": "x"}]},
            "config.valuesFrom[0] has nme (did you mean name?); it takes kind, name, namespace",
            id="in a list",
        ),
        pytest.param("helm", {"dependencyAuth": [{"host": "a"}]}, "config.dependencyAuth: expected a list", id="auth"),
        pytest.param("helm", {"helmVersion": "3"}, "config.helmVersion is '3'; expected the number 3 or 4", id="Helm"),
        pytest.param("helm", {"lookup": {}}, "config.lookup: expected a list of objects", id="lookup"),
        pytest.param(
            "kustomize", {"pth": "a"}, f"did you mean path?); the format kustomize takes path, {PATCHES}", id="path"
        ),
        pytest.param("plain", {"recursive": "yes"}, "config.recursive is str; expected true or false", id="type"),
        pytest.param("plain", {"patchs": []}, "config has patchs (did you mean patches?)", id="of every format"),
        pytest.param(
            "own-format", {"patches": [{"ptch": "a"}]}, "config.patches[0] has ptch (did you mean patch?)", id="plug-in"
        ),
        pytest.param("registry-v1", {"watchNamspace": "a"}, "(did you mean watchNamespace?)", id="operator"),
        pytest.param(
            "registry-v1",
            {"deploymentConfig": {"evn": []}},
            "config.deploymentConfig has evn (did you mean env?); it takes env, envFrom",
            id="deploymentConfig",
        ),
        pytest.param(
            "registry-v1",
            {"deploymentConfig": {"resources": {"limts": {}}}},
            "config.deploymentConfig.resources has 'limts', which is no field there; did you mean limits?",
            id="by the schema of Kubernetes",
        ),
        pytest.param(
            "registry-v1", {"certificates": "none of these"}, "config.certificates: expected cert-manager", id="issuer"
        ),
        pytest.param("plain", {"x\x1b[31m": 1, "y" * 9_000: 1}, "config has x", id="hostile names"),
    ],
)
def test_what_no_content_could_be_given_is_said_with_its_path(name: str, config: dict[str, Any], words: str) -> None:
    with pytest.raises(BadConfig) as said:
        check_config(name, config)
    assert words in str(said.value)
    assert "\x1b" not in str(said.value)
    assert len(str(said.value)) < 1_000


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("own-format", {"anything": {"goes": 1}}),
        ("helm", {"values": {"any": 1}, "valuesFrom": [{"kind": "Secret", "name": "a"}], "patches": []}),
        ("registry-v1", {"watchNamespace": "a", "deploymentConfig": {"resources": {"limits": {"cpu": "1"}}}}),
        ("kustomize", {"path": "overlays/prod", "namePrefix": "a-"}),
        ("plain", {}),
    ],
)
def test_what_some_content_could_be_given_is_not_refused(name: str, config: dict[str, Any]) -> None:
    check_config(name, config)


@pytest.mark.parametrize("name", ["helm", "kustomize", "plain", "registry-v1"])
def test_the_keys_that_are_offered_are_those_that_the_format_takes(name: str) -> None:
    keys = [path for path in list_config_keys(name) if "." not in path]
    with pytest.raises(BadConfig, match="config has zzz;") as said:
        check_config(name, {**dict.fromkeys(keys), "zzz": 1})
    own, _, of_all = str(said.value).partition(" takes ")[2].partition(", and every format ")
    assert sorted(keys) == sorted([*own.split(", "), *of_all.split(", ")])
    assert list_config_keys("own-format") == {}


def test_fields_of_deployments_are_those_of_the_schema() -> None:
    offered = list_config_keys("registry-v1")
    paths = ("deploymentConfig.env", "deploymentConfig.resources.limits", "deploymentConfig.affinity.nodeAffinity")
    assert [offered[path] for path in paths] == [[], {}, {}]
