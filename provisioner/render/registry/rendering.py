"""From a tree to the objects of an operator bundle: read, checked, and generated part by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from provisioner.render import plain
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.objects import Found, IsNamespaced
from provisioner.render.registry import generated_objects
from provisioner.render.registry.bundle import RegistryBundle, bundle_folder, check, read
from provisioner.render.registry.config import RegistryConfig, config_of, is_namespace_name, known_part
from provisioner.render.registry.fields import SUPPORTED, Fields
from provisioner.render.registry.generated_objects import deployments
from provisioner.values import Requirement, Tree

SUGGESTED_NAMESPACE = "operatorframework.io/suggested-namespace"


@dataclass(frozen=True, slots=True)
class RenderedBundle:
    """The objects of a bundle, the files that were used, what it requires, and its version.

    `suggested_namespace` is where its publisher would install it, "" where the bundle does not say.
    """

    objects: Iterator[Found]
    used: list[str]
    requirements: tuple[Requirement, ...]
    version: str
    suggested_namespace: str


def find(
    tree: Tree,
    *,
    destinations: tuple[str, ...],
    config: Mapping[str, Any],
    install_namespace: str,
    is_namespaced: IsNamespaced,
    limits: YamlLimits,
) -> RenderedBundle:
    """The objects of the bundle and of other sources beside it, and what it says of itself.

    Raises BadBundle with every reason of OLM's not to install it, BadConfig, InvalidManifest and BundleTooLarge.
    """
    folder = bundle_folder(tree, destinations)
    bundle = read(tree, folder, YamlMeter(limits))
    check(bundle)
    bundle = known_part(_without(bundle, generated_objects.own_services(bundle)))
    wanted = config_of(config, bundle, install_namespace=install_namespace, is_namespaced=is_namespaced)
    others = [destination for destination in destinations if destination != folder]
    extra = plain.select(tree, destinations=others, config={plain.RECURSIVE: True}) if others else []
    objects = chain(_generated(bundle, wanted, install_namespace), plain.find(tree, extra, limits=limits))
    suggested = bundle.csv.annotations.get(SUGGESTED_NAMESPACE, "")
    return RenderedBundle(
        objects,
        [*bundle.files, *(file for files in extra for file in files)],
        bundle.requirements,
        bundle.csv.version,
        suggested if is_namespace_name(suggested) else "",
    )


def _without(bundle: RegistryBundle, left_out: list[Found]) -> RegistryBundle:
    """The bundle without these objects, whose files are not used then."""
    others = tuple(other for other in bundle.others if other not in left_out)
    unused = {one.file for one in left_out}
    return replace(bundle, others=others, files=tuple(path for path in bundle.files if path not in unused))


def _generated(bundle: RegistryBundle, config: RegistryConfig, namespace: str) -> Iterator[Found]:
    csv = bundle.csv
    source = bundle.csv_file
    made = chain(
        generated_objects.service_accounts(bundle, namespace),
        generated_objects.roles(csv, namespace, config.namespaces),
    )
    yield from (Found(body, source) for body in made)
    yield from generated_objects.definitions(bundle, config.certificates, namespace)
    yield from (_placed(other, namespace) for other in bundle.others)
    made = chain(
        deployments(bundle, config, namespace),
        generated_objects.configurations(bundle, config, namespace),
        generated_objects.services(bundle, config.certificates, namespace),
    )
    yield from (Found(body, source) for body in made)


def _placed(found: Found, namespace: str) -> Found:
    """An object of manifests/ in the namespace of the installation, whatever it names, where its kind has one."""
    body = Fields.of(found.body, found.place)
    if not SUPPORTED[body.text("kind")]:
        return found
    meta = {**body.mapping("metadata").value, "namespace": namespace}
    return Found({**body.value, "metadata": meta}, found.file, found.line)
