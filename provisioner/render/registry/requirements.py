"""What an operator bundle asks of its cluster beyond its own objects. OLM v1 refuses bundles that ask for other
packages or APIs, or ignores it; here nothing is refused for it, and a report says what is there and what is not.

Source: operator-framework/api, pkg/operators/v1alpha1 (minKubeVersion, nativeAPIs, required CRDs), and the properties
and dependencies of operator-registry: olm.package, olm.gvk, olm.constraint and their `.required` forms,
olm.maxOpenShiftVersion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from provisioner.errors import BundleTooLarge
from provisioner.render.registry.fields import Fields
from provisioner.sentences import some
from provisioner.values import Requirement, RequirementKind

# No bundle of the public catalogs asks for more than 30.
MAX_REQUIREMENTS = 200
MAX_WORDS = 300


def of_version(spec: Fields) -> Iterator[Requirement]:
    """What the spec of a ClusterServiceVersion asks for."""
    if version := spec.text("minKubeVersion"):
        yield _requirement(RequirementKind.KUBERNETES, version=version)
    for one in spec.mapping("customresourcedefinitions").mappings("required"):
        _, _, group = one.text("name").partition(".")
        yield _api(group, one.text("version"), one.text("kind"))
    for one in spec.mapping("apiservicedefinitions").mappings("required"):
        yield _api(one.text("group"), one.text("version"), one.text("kind"))
    for one in spec.mappings("nativeAPIs"):
        yield _api(one.text("group"), one.text("version"), one.text("kind"))


def of_properties(listed: list[Fields]) -> Iterator[Requirement]:
    """What properties (properties.yaml, the annotation olm.properties) and dependencies.yaml ask for.

    Properties that say what the bundle itself is or brings, and those of others, ask for nothing.
    """
    for one in listed:
        if read := _TYPES.get(one.text("type")):
            yield read(one)


def of_unknown_fields(what: str, paths: list[str]) -> Iterator[Requirement]:
    """What an object of the bundle has of fields that no Kubernetes has."""
    if paths:
        yield _requirement(RequirementKind.FIELD, what, version=some(paths, 5))


def unreadable(file: str, why: str) -> Requirement:
    """A file that says what the bundle depends on, and that nobody can read."""
    return _requirement(RequirementKind.CONSTRAINT, file, version=f"its file cannot be read: {why}")


def bounded(found: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Each once, in order. Raises BundleTooLarge."""
    once = tuple(dict.fromkeys(found))
    if len(once) > MAX_REQUIREMENTS:
        raise BundleTooLarge(f"the bundle has {len(once)} requirements; at most {MAX_REQUIREMENTS} are read")
    return once


def _package(fields: Fields) -> Requirement:
    value = fields.mapping("value")
    name = value.text("packageName") or value.text("name")
    return _requirement(RequirementKind.PACKAGE, name, version=value.text("versionRange") or value.text("version"))


def _kind(fields: Fields) -> Requirement:
    value = fields.mapping("value")
    return _api(value.text("group"), value.text("version"), value.text("kind"))


def _constraint(fields: Fields) -> Requirement:
    value = fields.mapping("value")
    asked = ", ".join(sorted(str(key) for key in value.value if key != "failureMessage"))
    return _requirement(RequirementKind.CONSTRAINT, asked, version=value.text("failureMessage"))


def _openshift(fields: Fields) -> Requirement:
    value = fields.value.get("value")
    return _requirement(RequirementKind.OPENSHIFT, version=str(value if isinstance(value, str | int | float) else ""))


_TYPES: Mapping[str, Callable[[Fields], Requirement]] = {
    "olm.package.required": _package,
    "olm.gvk.required": _kind,
    "olm.constraint": _constraint,
    "olm.maxOpenShiftVersion": _openshift,
}
# In dependencies.yaml, what a bundle depends on has the names that properties use for what it is.
_DEPENDENCIES = {"olm.package": "olm.package.required", "olm.gvk": "olm.gvk.required"}


def as_properties(dependencies: list[Fields]) -> list[Fields]:
    """The entries of dependencies.yaml as the properties that OLM makes of them."""
    renamed = [_DEPENDENCIES.get(kind := one.text("type"), kind) for one in dependencies]
    return [Fields({**one.value, "type": kind}, one.where) for one, kind in zip(dependencies, renamed, strict=True)]


def _api(group: str, version: str, kind: str) -> Requirement:
    return _requirement(RequirementKind.API, kind, group=group, version=version)


def _requirement(kind: RequirementKind, name: str = "", **words: str) -> Requirement:
    return Requirement(kind, name[:MAX_WORDS], **{key: value[:MAX_WORDS] for key, value in words.items()})
