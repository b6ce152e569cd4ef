"""The formats a bundle may have, and the one way from a tree to a content.

A format is a function from a tree and a `Rendering` to the objects that it finds and the files that it used. It decides
nothing about them: what all contents have to obey (objects.admit) is applied afterwards, to plug-ins too. To add a
format, write such a function and put it in FORMATS, or name it in another package as an entry point of the group
`pratique.formats` (docs/contributing/plug-ins.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from provisioner.errors import BadBundle, InvalidManifest, PluginFailed
from provisioner.plugins import Plugin, PluginGroup, call, installed, load, tried
from provisioner.render import helm, kustomize, patches, plain, registry
from provisioner.render.canonical import canonical, content_digest
from provisioner.render.known_keys import PATCH_KEYS
from provisioner.render.limits import YamlMeter
from provisioner.render.objects import Found, admit, flattened
from provisioner.render.renderings import Format, Rendered, Rendering
from provisioner.values import Content, Hook, HookMoment, Manifest, Pin, Requirement, RequirementKind, Tree, UnusedFiles

# So many names of files that no format used are kept; all are counted.
MAX_UNUSED_PATHS = 100


def find_plain(tree: Tree, rendering: Rendering) -> Rendered:
    """The objects of a plain bundle."""
    sources = plain.select(tree, destinations=rendering.destinations, config=rendering.config)
    used = [file for files in sources for file in files]
    meter = YamlMeter(rendering.limits, takes_repeated=True)
    return Rendered(plain.find(tree, sources, meter), used, repeated=meter.repeated)


FORMATS: dict[str, Format] = {
    "helm": helm.find,
    "kustomize": kustomize.find,
    "plain": find_plain,
    "registry-v1": registry.find,
}
# A plug-in may take as long as a chart.
RENDER_SECONDS = 60.0
# Of the version that a bundle claims.
MAX_VERSION = 100
# Of what a plug-in says that a bundle requires, such as the name of a package.
MAX_WORD = 500
FUNCTION = "a function of a Tree and a Rendering"
# As OLM and RukPak spell them.
SPELLINGS = {"plain+v0": "plain", "registry+v1": "registry-v1", "helm+v3": "helm"}


def is_told_of_target(name: str) -> bool:
    """Whether a rendering in this format depends on the cluster's version and APIs, as a chart's does."""
    return SPELLINGS.get(name, name) == "helm"


def has_releases(name: str) -> bool:
    """Whether the build metadata of a bundle's version is its release, which has an order, as in OLM v1."""
    return SPELLINGS.get(name, name) == "registry-v1"


def format_names() -> list[str]:
    """The formats that can be asked for, plug-ins included, without loading any."""
    return sorted({*FORMATS, *(one.name for one in _plugins() if not one.problem)})


def format_plugins() -> list[Plugin]:
    """The formats of other packages, loaded, each with its problem if it is disabled."""
    return [tried(one, callable, FUNCTION) for one in _plugins()]


def render_content(tree: Tree, rendering: Rendering, *, pins: Iterable[Pin]) -> Content:
    """Render an unpacked bundle, once: what this returns is what is reviewed, stored and applied.

    The same tree and rendering give the same digest on every run and machine. Raises BadBundle (also for an unknown
    format), InvalidManifest, BundleTooLarge and PluginFailed.
    """
    rendered, admitted = _rendered(tree, rendering)
    manifests = tuple(one for one in admitted if one.hook is None)
    hooks = tuple(one for one in admitted if one.hook)
    digest = content_digest(
        (*manifests, *hooks), install_namespace=rendering.install_namespace, service_account=rendering.service_account
    )
    # What is left of a tree when its format has taken what it uses.
    paths = set(tree.files).difference(rendered.used, rendering.used)
    ordered = sorted(paths, key=lambda path: (not plain.is_readable(path), path))
    unused = UnusedFiles(len(ordered), sum(map(plain.is_readable, ordered)), tuple(ordered[:MAX_UNUSED_PATHS]))
    return Content(
        manifests,
        rendering.install_namespace,
        rendering.service_account,
        tuple(pins),
        digest,
        unused,
        rendered.requirements,
        hooks,
        rendered.values,
        rendered.version[:MAX_VERSION],
        rendered.lookups,
        rendered.suggested_namespace,
        rendered.spec_values,
        repeated=tuple(sorted(rendered.repeated)),
        patches=rendered.patches,
        made_up=rendered.made_up,
        engine=rendered.engine,
        helm_3_differs=None if rendered.patches else rendered.helm_3_differs,
    )


def _rendered(tree: Tree, rendering: Rendering) -> tuple[Rendered, tuple[Manifest, ...]]:
    name, meter = SPELLINGS.get(rendering.format, rendering.format), YamlMeter(rendering.limits)
    changes = patches.parse_config(rendering.config, meter)
    rest = {key: value for key, value in rendering.config.items() if key not in PATCH_KEYS}
    rendering = replace(rendering, config=rest)
    if name in FORMATS:
        return _admitted(FORMATS[name](tree, rendering), rendering, changes, meter)
    plugin = next((one for one in _plugins() if one.name == name), None)
    if plugin is None:
        raise BadBundle(f"the format {name!r} is not known here; known are {', '.join(format_names())}")
    render: Format = load(plugin, callable, FUNCTION)
    # Copies: what is given here is used further on.
    given = replace(rendering, config=deepcopy(dict(rendering.config)))

    def run() -> tuple[Rendered, tuple[Manifest, ...]]:
        # What a plug-in returned, if it is what a format returns; its objects are looked at as they come.
        rendered = render(Tree(dict(tree.files)), given)
        if not isinstance(rendered, Rendered):
            raise PluginFailed(f"it returned a {type(rendered).__name__}; expected Rendered")
        used = frozenset(rendered.used)
        if not used <= set(tree.files):
            raise PluginFailed("it says that it used a file that is not in the tree")
        requirements = tuple(rendered.requirements)
        if not all(map(_is_requirement, requirements)):
            raise PluginFailed("its requirements are not sound; expected Requirement, of a RequirementKind and short")
        return _admitted(Rendered(_sound_objects(rendered.objects), used, requirements), rendering, changes, meter)

    return call(plugin, run, seconds=RENDER_SECONDS, may_raise=(BadBundle,))


def _admitted(
    rendered: Rendered, rendering: Rendering, changes: patches.PatchConfig | None, meter: YamlMeter
) -> tuple[Rendered, tuple[Manifest, ...]]:
    namespace, objects = rendering.install_namespace, rendered.objects
    if changes is not None:
        objects = flattened(objects, meter)
        objects, results, names = patches.patch_objects(objects, changes, install_namespace=namespace, meter=meter)
        rendered = replace(rendered, patches=results, made_up=rendered.made_up.renamed(names))
    manifests = admit(
        objects, install_namespace=namespace, is_namespaced=rendering.is_namespaced, limits=rendering.limits
    )
    return rendered, manifests


def _plugins() -> list[Plugin]:
    return installed(PluginGroup.FORMATS, {*FORMATS, *SPELLINGS})


def _is_sound_hook(hook: Any) -> bool:
    if not isinstance(hook, Hook) or not hook.moments:
        return False
    is_moment = all(isinstance(moment, HookMoment) for moment in hook.moments)
    return is_moment and isinstance(hook.weight, int) and isinstance(hook.is_cleared, bool)


def _is_requirement(value: Any) -> bool:
    if not (isinstance(value, Requirement) and isinstance(value.kind, RequirementKind)):
        return False
    words = (value.name, value.group, value.version)
    # What nobody shows holds a constraint that this Pratique wrote.
    return not value.constraint and all(
        isinstance(word, str) and word.isprintable() and len(word) <= MAX_WORD for word in words
    )


def _sound_objects(objects: Iterable[Any]) -> Iterator[Found]:
    for each in objects:
        if not isinstance(each, Found):
            raise PluginFailed(f"its objects hold a {type(each).__name__}; expected Found")
        if not (isinstance(each.file, str) and each.file.isprintable() and isinstance(each.line, int)):
            raise PluginFailed("an object has no sound place; expected a path in the tree, and the number of a line")
        if not (each.hook is None or _is_sound_hook(each.hook)):
            raise PluginFailed("an object has a hook that is not sound; expected a Hook with its moments and a weight")
        try:
            yield Found(canonical(each.body), each.file, each.line)
        except InvalidManifest as exc:
            raise each.refuse(str(exc)) from exc
