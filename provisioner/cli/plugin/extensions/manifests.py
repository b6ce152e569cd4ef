"""Roles and bindings as YAML for people and kubectl, and as content that the library's reports take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import yaml

from provisioner.values import Content, JsonObject, Manifest


def manifest_text(objects: Iterable[JsonObject]) -> str:
    """YAML documents. Letters beyond ASCII stand as escapes, so that no name can pass for another."""
    return "".join(f"---\n{yaml.safe_dump(dict(one), sort_keys=False)}" for one in objects)


def commented(text: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


def content_of(objects: Sequence[JsonObject]) -> Content:
    """Objects as if a bundle held them; nothing applies it, so it has no digest."""
    return Content(tuple(Manifest(one) for one in objects), "", "", (), "")
