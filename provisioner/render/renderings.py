"""What every format is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.render.limits import YamlLimits
from provisioner.render.objects import Found, IsNamespaced
from provisioner.render.targets import Target
from provisioner.values import KeptValues, Lookup, MadeUp, ObjectRef, PatchResult, RepeatedKey, Requirement, Tree


@dataclass(frozen=True, slots=True)
class Rendering:
    """How a tree shall be rendered: what the BundleDeployment says, and which scope the cluster's kinds have.

    `destinations` are the folders of the tree that the sources lie in, "" for the root. `target` is the cluster, None
    where none is known; only a format that `is_told_of_target` looks at it.
    `kept_values` are those that the deployment kept of what its chart made up; None where there is no deployment to
    keep them, so that a fixed text stands for each. `used` are files that something else of the tree was made from.
    """

    format: str
    install_namespace: str
    service_account: str
    is_namespaced: IsNamespaced
    config: Mapping[str, Any] = field(default_factory=dict)
    destinations: tuple[str, ...] = ("",)
    limits: YamlLimits = field(default_factory=YamlLimits)
    target: Target | None = None
    kept_values: KeptValues | None = field(default=None, repr=False)
    used: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a format makes of a tree: the objects, in order, the paths of the files that it used for them, what the
    bundle asks of its cluster, the values that it was given, as JSON texts by path, the version that it claims, the
    objects of the cluster that it was told of, the namespace in which it would be installed, the paths of those values
    that the spec sets, the keys that are there twice, all of them when the last object was read, what `config` changed
    in the objects afterwards, which no format does, what the chart made up, the version of Helm that rendered it, and
    the objects that Helm 3 renders otherwise, None where nobody knows."""

    objects: Iterable[Found]
    used: Collection[str]
    requirements: tuple[Requirement, ...] = ()
    values: Mapping[str, str] | None = None
    version: str = ""
    lookups: tuple[Lookup, ...] = ()
    suggested_namespace: str = ""
    spec_values: frozenset[str] = frozenset()
    repeated: Collection[RepeatedKey] = ()
    patches: tuple[PatchResult, ...] = ()
    made_up: MadeUp = field(default_factory=MadeUp)
    engine: str = ""
    helm_3_differs: tuple[ObjectRef, ...] | None = None


Format = Callable[[Tree, Rendering], Rendered]
