"""What a preview of roles and bindings takes: content for the library's reports, and comments in YAML."""

from __future__ import annotations

from collections.abc import Sequence

from provisioner.values import Content, JsonObject, Manifest


def commented(text: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


def content_of(objects: Sequence[JsonObject]) -> Content:
    """Objects as if a bundle held them; nothing applies it, so it has no digest."""
    return Content(tuple(Manifest(one) for one in objects), "", "", (), "")
