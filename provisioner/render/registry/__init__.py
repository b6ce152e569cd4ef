"""Operator bundles of the format registry+v1: a ClusterServiceVersion becomes the objects that it stands for.

The semantics are those of OLM v1 (operator-controller): what it refuses is refused, what it generates is generated,
with the same names. Where this differs, the module that differs says so. Ours are `watchNamespaces` (MultiNamespace,
which only RukPak had) and extra sources: their manifests are read as those of a plain bundle.

- `find`: the objects of a tree, the files that were used, and what the bundle asks of its cluster
"""

from provisioner.render.registry.rendering import find

__all__ = ["find"]
