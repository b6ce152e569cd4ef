"""Every room holds few modules and says what it is for."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("approvals", "provisioner")
# Generated in their order, and imported by Django alone.
NO_ROOM = ROOT / "approvals/migrations"
ROOMS = sorted(path.parent for one in PACKAGES for path in ROOT.glob(f"{one}/**/__init__.py") if path.parent != NO_ROOM)
MOST_MODULES = 20


def named(room: Path) -> str:
    return ".".join(room.relative_to(ROOT).parts)


def test_a_room_holds_few_modules() -> None:
    counts = {named(room): len(modules_inside(room)) for room in ROOMS}
    assert {room: count for room, count in counts.items() if count > MOST_MODULES} == {}


def modules_inside(room: Path) -> list[Path]:
    return [one for one in room.iterdir() if one.suffix == ".py" and one.name not in ("__init__.py", "__main__.py")]


def test_a_room_says_what_is_in_it() -> None:
    docs = {named(room): ast.get_docstring(ast.parse((room / "__init__.py").read_text())) for room in ROOMS}
    assert [room for room, words in docs.items() if not words] == []
