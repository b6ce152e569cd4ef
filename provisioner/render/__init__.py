"""From a tree to manifests: one reader of YAML, one canonical form, one digest, and the formats."""

from provisioner.render.canonical import canonical, canonical_json, content_digest, parse, serialise, stored_digest
from provisioner.render.formats import FORMATS, Format, Rendering, format_names, render_content
from provisioner.render.limits import Limits, Meter
from provisioner.render.objects import Found, IsNamespaced, admit
from provisioner.render.plain import FOLDER as PLAIN_FOLDER
from provisioner.render.plain import files_read
from provisioner.render.scopes import BUILT_IN, defined_scopes
from provisioner.render.writing import write, write_quoted
from provisioner.render.yaml import load_all

__all__ = [
    "BUILT_IN",
    "FORMATS",
    "PLAIN_FOLDER",
    "Format",
    "Found",
    "IsNamespaced",
    "Limits",
    "Meter",
    "Rendering",
    "admit",
    "canonical",
    "canonical_json",
    "content_digest",
    "defined_scopes",
    "files_read",
    "format_names",
    "load_all",
    "parse",
    "render_content",
    "serialise",
    "stored_digest",
    "write",
    "write_quoted",
]
