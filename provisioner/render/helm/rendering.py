"""From a tree to the objects of a chart: found, given its values, rendered, read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from provisioner.errors import BadBundle, BadConfig
from provisioner.json_values import mapping
from provisioner.render import plain
from provisioner.render.helm.chart import CHART, VALUES, chart_files, chart_folder, rendered_objects, with_hooks
from provisioner.render.helm.engine import ChartJob, render
from provisioner.render.helm.lookups import filled, wanted_lookups
from provisioner.render.helm.values import checked_release_name, config_of, flat, merged, set_paths
from provisioner.render.helm.values_from import given_values
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found
from provisioner.render.renderings import Rendered, Rendering
from provisioner.render.targets import LookedUp
from provisioner.render.yaml import load_documents
from provisioner.sentences import some, verb
from provisioner.values import Tree


def find(tree: Tree, rendering: Rendering) -> Rendered:
    """The chart in the tree, its crds/ first, and what other sources have beside it.

    A template that gave nothing but hooks that are left out does not count as used, so that the report names it.
    Raises BadBundle, BadConfig, InvalidManifest and BundleTooLarge.
    """
    meter, target = YamlMeter(rendering.limits), rendering.target
    folder, destination = chart_folder(tree, rendering.destinations)
    given = given_values(rendering.config, target.values_from if target else None, rendering.install_namespace, meter)
    wanted = config_of(rendering.config, tree, meter, given.values)
    files = chart_files(tree, folder)
    job = ChartJob(
        files={path: data for path, data in files.items() if f"{folder}/{path}".lstrip("/") not in wanted.files},
        values=wanted.values,
        release_name=wanted.release_name or checked_release_name(_chart_name(files[CHART], meter)),
        namespace=rendering.install_namespace,
        kube_version=target.kube_version if target else "",
        api_versions=target.api_versions if target else (),
        is_upgrade=bool(target and target.is_upgrade),
        lookups=_choose_lookups(rendering),
    )
    output = render(job)
    found = [*_crds(output.crds, folder, meter), *rendered_objects(output.templates, folder, meter)]
    kept = with_hooks(found, is_upgrade=job.is_upgrade)
    again = with_hooks(rendered_objects(output.again, folder, meter), is_upgrade=job.is_upgrade)
    # Raise BadBundle where an object that counts was another one the second time; what is left out may move.
    moving = (_within(folder, path) for path in output.again)
    before, after = _by_file(kept), _by_file(again)
    named = [path for path in moving if before.get(path) != after.get(path)]
    if named:
        raise BadBundle(
            f"the chart: {some(named)} {verb(len(named), 'render')} differently each time (random text, new keys or"
            " the time), so nobody could review what the next request brings; give what it makes up as a value, or"
            " switch it off"
        )
    kept, lookups = filled(kept, (*(job.lookups or ()), *given.objects), meter)
    left_out = {one.file for one in found} - {one.file for one in kept}
    inside = [_within(folder, path) for path in files]
    rest = Tree({path: data for path, data in tree.files.items() if path not in wanted.files})
    others = [
        other
        for other in rendering.destinations
        if other != destination and any(path.startswith(f"{other}/" if other else "") for path in rest.files)
    ]
    extra = plain.select(rest, destinations=others, config={plain.RECURSIVE: True}) if others else []
    objects = chain(kept, plain.find(rest, extra, limits=rendering.limits))
    used = [*(path for path in inside if path not in left_out), *wanted.files]
    used += [file for paths in extra for file in paths]
    return Rendered(
        objects,
        used,
        values=flat(merged(_mapping(files.get(VALUES, b""), VALUES, meter), given.shown(wanted.values))),
        version=str(_mapping(files[CHART], CHART, meter).get("version") or ""),
        lookups=lookups,
        spec_values=set_paths(given.shown(wanted.values)),
    )


def _choose_lookups(rendering: Rendering) -> tuple[LookedUp, ...] | None:
    """What the chart may look up; None where lookups are off, and find nothing."""
    if wanted_lookups(rendering.config, rendering.install_namespace) is None:
        return None
    if rendering.target is None or rendering.target.lookups is None:
        raise BadConfig("config.lookup names objects of the cluster, and no cluster was asked; say which one it is")
    return rendering.target.lookups


def _mapping(text: bytes, file: str, meter: YamlMeter) -> Mapping[str, Any]:
    """What a file of the chart says; empty where it is none that is one mapping."""
    documents = list(load_documents(text, name=file, meter=meter))
    return mapping(documents[0].value if len(documents) == 1 else None)


def _chart_name(chart: bytes, meter: YamlMeter) -> str:
    name = _mapping(chart, CHART, meter).get("name")
    if not isinstance(name, str) or not name:
        raise BadBundle(f"{CHART}: expected one mapping with the name of the chart")
    return name


def _crds(texts: Mapping[str, str], folder: str, meter: YamlMeter) -> Iterator[Found]:
    """The objects of crds/, which Helm takes as they are, and deletes neither with an upgrade nor with the release."""
    for path, text in sorted(texts.items()):
        place = _within(folder, path)
        for document in load_documents(text.encode(), name=place, meter=meter):
            yield Found(document.value, place, is_kept=True)


def _by_file(found: Iterable[Found]) -> Mapping[str, list[Found]]:
    files: dict[str, list[Found]] = {}
    for one in found:
        files.setdefault(one.file, []).append(one)
    return files


def _within(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
