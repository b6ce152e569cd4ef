"""Helm charts: rendered by Helm's own engine, in a bounded process that reaches neither files nor a cluster.

- `find`: the objects of a chart, the files that were used, its values, and what it looked up
- `keep_engine`: several charts by one process
- `wanted_lookups`, `looked_up`: the objects that a chart may look up, and what it is told of them
"""

from provisioner.render.helm.engine import keep_engine
from provisioner.render.helm.lookups import looked_up, wanted_lookups
from provisioner.render.helm.rendering import find

__all__ = ["find", "keep_engine", "looked_up", "wanted_lookups"]
