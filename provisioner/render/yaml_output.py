"""YAML that is read back as the same values: by kubectl, and by every reader of YAML 1.1 or 1.2.

PyYAML quotes what it would itself read as something else. kubectl reads more as numbers and truths (`scalars`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

import yaml

from provisioner.errors import InvalidManifest
from provisioner.render.scalars import resolve

# Ends of lines and marks that only some readers take for such, and what PyYAML writes unescaped between single quotes.
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_DOUBLE = '"'


def write(value: object) -> str:
    """One document; text is quoted where a reader might take it for something else. Keys keep their order."""
    return _dumped([value], _Writer, explicit_start=False, allow_unicode=True)


def write_quoted(documents: Iterable[object]) -> str:
    """Documents, each begun with `---`, in which every text but keys stands in quotes: for names of others.

    What is not ASCII is escaped, so that no name looks like another one to whoever reads it before it is applied (S24).
    """
    return _dumped(documents, _Quoting, explicit_start=True, allow_unicode=False)


def _dumped(documents: Iterable[object], writer: type[_Writer], *, explicit_start: bool, allow_unicode: bool) -> str:
    return yaml.dump_all(
        [*documents],
        Dumper=writer,
        sort_keys=False,
        width=sys.maxsize,
        explicit_start=explicit_start,
        allow_unicode=allow_unicode,
    )


def _is_plainly_itself(text: str) -> bool:
    if _ODD.search(text):
        return False
    try:
        return resolve("", text, is_plain=True) == text
    except InvalidManifest:
        return False


class _Writer(yaml.SafeDumper):
    """Without anchors: people read it, and compare it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = None if _is_plainly_itself(data) else _DOUBLE
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


class _Quoting(_Writer):
    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=_DOUBLE)

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        for key, _ in node.value:
            if _is_plainly_itself(key.value):
                key.style = None
        return node


_Writer.add_representer(str, _Writer.represent_str)
_Quoting.add_representer(str, _Quoting.represent_str)
