"""From a tree to manifests: one reader of YAML, one canonical form, one digest, and the formats."""

from provisioner.render.canonical import canonical, canonical_json, content_digest, parse, serialise, stored_digest
from provisioner.render.config_checks import check_config, list_config_keys
from provisioner.render.formats import (
    FORMATS,
    format_names,
    format_plugins,
    has_releases,
    is_told_of_target,
    render_content,
)
from provisioner.render.helm import (
    HELM_VERSION,
    DependencyAuth,
    ValuesReference,
    keep_engine,
    looked_up,
    values_object,
    wanted_dependency_auth,
    wanted_lookups,
    wanted_values,
)
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.objects import Found, IsNamespaced, admit
from provisioner.render.renderings import Format, Rendered, Rendering
from provisioner.render.targets import BUILT_IN, LookedUp, Target, ValuesObject, defined_scopes
from provisioner.render.yaml import load_all, load_documents
from provisioner.render.yaml_output import write, write_quoted

__all__ = [
    "BUILT_IN",
    "FORMATS",
    "HELM_VERSION",
    "DependencyAuth",
    "Format",
    "Found",
    "IsNamespaced",
    "LookedUp",
    "Rendered",
    "Rendering",
    "Target",
    "ValuesObject",
    "ValuesReference",
    "YamlLimits",
    "YamlMeter",
    "admit",
    "canonical",
    "canonical_json",
    "check_config",
    "content_digest",
    "defined_scopes",
    "format_names",
    "format_plugins",
    "has_releases",
    "is_told_of_target",
    "keep_engine",
    "list_config_keys",
    "load_all",
    "load_documents",
    "looked_up",
    "parse",
    "render_content",
    "serialise",
    "stored_digest",
    "values_object",
    "wanted_dependency_auth",
    "wanted_lookups",
    "wanted_values",
    "write",
    "write_quoted",
]
