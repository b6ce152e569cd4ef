"""Helm charts: rendered by Helm's own engine, in a bounded process that reaches neither files nor a cluster.

- `find`: the objects of a chart, the files that were used, and its values
"""

from provisioner.render.helm.rendering import find

__all__ = ["find"]
