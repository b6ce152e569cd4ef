"""Every room holds few modules, says what it is for, and what others may use of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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


def exported(room: Path) -> set[str]:
    tree = ast.parse((room / "__init__.py").read_text())
    listed = [
        ast.literal_eval(one.value)
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.targets[0].id == "__all__"
    ]
    return set(listed[0]) if listed else set()


def modules_of(room: Path) -> set[str]:
    return {one.stem for one in room.iterdir() if one.suffix == ".py"} | {
        one.name for one in room.iterdir() if (one / "__init__.py").exists()
    }


FACES = {named(room): (exported(room), modules_of(room)) for room in ROOMS}
SOURCES = [path for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.py"))]


def test_a_room_tells_what_each_module_is_for_that_others_may_use() -> None:
    found = {named(room): untold(room) for room in ROOMS}
    assert {room: modules for room, modules in found.items() if modules} == {}


def untold(room: Path) -> list[str]:
    """The modules that the room exports, as modules, without a line about them."""
    names, modules = FACES[named(room)]
    tree = ast.parse((room / "__init__.py").read_text())
    told = ast.get_docstring(tree) or ""
    values = {name.asname or name.name for one in tree.body if isinstance(one, ast.ImportFrom) for name in one.names}
    return [one for one in sorted(names & modules - values) if f"- `{one}`: " not in told]


def test_code_uses_of_other_rooms_what_they_export() -> None:
    found = {str(path.relative_to(ROOT)): sorted(set(trespasses(path))) for path in SOURCES}
    assert {path: words for path, words in found.items() if words} == {}


def trespasses(path: Path) -> Iterator[str]:
    own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in PACKAGES:
            for name in node.names:
                yield from hidden(own, [*str(node.module).split("."), name.name])


def hidden(own: str, parts: list[str]) -> Iterator[str]:
    for length in range(1, len(parts)):
        room = ".".join(parts[:length])
        is_inside = own == room or own.startswith(f"{room}.")
        if room in FACES and not is_inside and parts[length] not in FACES[room][0]:
            yield f"{room} does not export {parts[length]}"
