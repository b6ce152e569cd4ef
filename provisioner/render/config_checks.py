"""What is wrong with `spec.config` whatever its content is: said by the same code to forms, REST and the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from provisioner.render import plain
from provisioner.render.formats import SPELLINGS
from provisioner.render.helm import values as helm
from provisioner.render.helm.dependencies import DEPENDENCY_AUTH, wanted_dependency_auth
from provisioner.render.helm.lookups import wanted_lookups
from provisioner.render.helm.values_from import wanted_values
from provisioner.render.known_keys import PATCH_KEYS, check_config_keys
from provisioner.render.kustomize.rendering import PATH
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.patches import parse_config
from provisioner.render.registry import config as registry
from provisioner.render.registry.config_schema import list_deployment_fields

# A spec in etcd is smaller than that, and a page is answered meanwhile.
SPEC_LIMITS = YamlLimits(max_nodes=20_000, max_characters=1_000_000)


def check_config(format_name: str, config: Mapping[str, Any]) -> None:
    """Raise BadConfig for what no content of this format can be given, with its path, what was found and expected.

    Of a plug-in's format only what every format takes is known.
    """
    check = _CHECKS.get(SPELLINGS.get(format_name, format_name))
    if check is not None:
        check({key: value for key, value in config.items() if key not in PATCH_KEYS})
    parse_config(config, YamlMeter(SPEC_LIMITS))


def list_config_keys(format_name: str) -> dict[str, Any]:
    """The keys that the config of a format can have, by their path, each with an example of its value; {} for the
    format of a plug-in. A step of a path is written as `flat` writes it: its dots come after a backslash."""
    own = _EXAMPLES.get(SPELLINGS.get(format_name, format_name))
    if own is None:
        return {}
    fields = list_deployment_fields() if "deploymentConfig" in own else {}
    return {**own, **{f"deploymentConfig.{path}": value for path, value in fields.items()}, **_PATCH_EXAMPLES}


def _check_chart(config: Mapping[str, Any]) -> None:
    helm.check_config(config)
    wanted_values(config, "")
    wanted_lookups(config, "")
    wanted_dependency_auth(config, "")


def _check_kustomization(config: Mapping[str, Any]) -> None:
    check_config_keys(config, (PATH,), "the format kustomize")


_EXAMPLES: dict[str, dict[str, Any]] = {
    "helm": {
        "values": {},
        "valuesFiles": ["values-prod.yaml"],
        "valuesFrom": [{"kind": "Secret", "name": ""}],
        "releaseName": "",
        helm.HELM_VERSION: helm.DEFAULT_HELM_VERSION,
        PATH: "",
        "tests": True,
        DEPENDENCY_AUTH: [{"host": "", "secret": {"name": ""}}],
        "lookup": [{"apiVersion": "v1", "kind": "Secret", "name": ""}],
    },
    "kustomize": {PATH: ""},
    "plain": {plain.RECURSIVE: True},
    "registry-v1": {
        "watchNamespace": "",
        "watchNamespaces": [""],
        "deploymentConfig": {},
        "certificates": str(registry.CertificateIssuer.CERT_MANAGER),
    },
}
_PATCH_EXAMPLES: dict[str, Any] = {
    "patches": [{"target": {"kind": "Deployment"}, "patch": ""}],
    "namespace": "",
    "namePrefix": "",
    "commonLabels": {},
    "images": [{"name": "", "newTag": ""}],
}
_CHECKS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "helm": _check_chart,
    "kustomize": _check_kustomization,
    "plain": plain.check_config,
    "registry-v1": registry.check_config,
}
