"""Helm charts: rendered by Helm's own engine, in a bounded process that reaches neither files nor a cluster.

- `find`: the objects of a chart, the files that were used, its values, and what it looked up
- `missing_dependencies`, `check_packed`: what a chart needs that it does not bring
- `wanted_dependency_auth`: the Secrets that open it
- `keep_engine`: several charts by one process
- `HELM_VERSION`: the key of the config that says which Helm
- `wanted_lookups`, `looked_up`: the objects that a chart may look up, and what it is told of them
- `wanted_values`, `values_object`: the objects that a chart gets values of, and what they hold
"""

from provisioner.render.helm.chart import chart_files, chart_folder
from provisioner.render.helm.dependencies import (
    Dependency,
    DependencyAuth,
    check_packed,
    missing_dependencies,
    wanted_dependency_auth,
)
from provisioner.render.helm.engine import keep_engine
from provisioner.render.helm.lookups import looked_up, wanted_lookups
from provisioner.render.helm.rendering import find
from provisioner.render.helm.values import HELM_VERSION
from provisioner.render.helm.values_from import ValuesReference, values_object, wanted_values

__all__ = [
    "HELM_VERSION",
    "Dependency",
    "DependencyAuth",
    "ValuesReference",
    "chart_files",
    "chart_folder",
    "check_packed",
    "find",
    "keep_engine",
    "looked_up",
    "missing_dependencies",
    "values_object",
    "wanted_dependency_auth",
    "wanted_lookups",
    "wanted_values",
]
