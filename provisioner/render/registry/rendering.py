"""From a tree to the objects of an operator bundle: read, checked, and generated part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from provisioner.render import plain
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found
from provisioner.render.registry import generated_objects
from provisioner.render.registry.bundle import RegistryBundle, bundle_folder, check, read
from provisioner.render.registry.config import RegistryConfig, config_of, is_namespace_name, known_part
from provisioner.render.registry.fields import SUPPORTED, Fields
from provisioner.render.registry.generated_objects import deployments
from provisioner.render.renderings import Rendered, Rendering
from provisioner.values import Tree

SUGGESTED_NAMESPACE = "operatorframework.io/suggested-namespace"


def find(tree: Tree, rendering: Rendering) -> Rendered:
    """The objects of the bundle and of other sources beside it, and what it says of itself.

    Raises BadBundle with every reason of OLM's not to install it, BadConfig, InvalidManifest and BundleTooLarge.
    """
    folder, namespace = bundle_folder(tree, rendering.destinations), rendering.install_namespace
    meter = YamlMeter(rendering.limits, takes_repeated=True)
    bundle = read(tree, folder, meter)
    check(bundle)
    # A Service of the bundle that is generated anyway is left out, and its file is not used then.
    own = generated_objects.own_services(bundle)
    unused = {service.file for service in own}
    files = tuple(path for path in bundle.files if path not in unused)
    bundle = known_part(
        replace(bundle, others=tuple(other for other in bundle.others if other not in own), files=files)
    )
    wanted = config_of(rendering.config, bundle, install_namespace=namespace, is_namespaced=rendering.is_namespaced)
    beside = [destination for destination in rendering.destinations if destination != folder]
    extra = plain.select(tree, destinations=beside, config={plain.RECURSIVE: True}) if beside else []
    objects = chain(_generated(bundle, wanted, namespace), plain.find(tree, extra, meter))
    suggested = bundle.csv.annotations.get(SUGGESTED_NAMESPACE, "")
    return Rendered(
        objects,
        [*bundle.files, *(file for files in extra for file in files)],
        bundle.requirements,
        version=bundle.csv.version,
        suggested_namespace=suggested if is_namespace_name(suggested) else "",
        repeated=meter.repeated,
    )


def _generated(bundle: RegistryBundle, config: RegistryConfig, namespace: str) -> Iterator[Found]:
    csv = bundle.csv
    source = bundle.csv_file
    made = chain(
        generated_objects.service_accounts(bundle, namespace),
        generated_objects.roles(csv, namespace, config.namespaces),
    )
    yield from (Found(body, source) for body in made)
    yield from generated_objects.definitions(bundle, config.certificates, namespace)
    # An object of manifests/ lies in the namespace of the installation, whatever it names, where its kind has one.
    for other in bundle.others:
        body = Fields.of(other.body, other.place)
        if not SUPPORTED[body.text("kind")]:
            yield other
            continue
        meta = {**body.mapping("metadata").value, "namespace": namespace}
        yield Found({**body.value, "metadata": meta}, other.file, other.line)
    made = chain(
        deployments(bundle, config, namespace),
        generated_objects.configurations(bundle, config, namespace),
        generated_objects.services(bundle, config.certificates, namespace),
    )
    yield from (Found(body, source) for body in made)
