"""The modules of this checkout, and which of them import which, as their text says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import grimp

from tests.support.folders import ROOT

PACKAGES = ("provisioner", "approvals")
# Django's own: written once, never imported, and proved by running them (tests/approvals/project/test_databases.py).
LEFT_OUT = "migrations"
# What a module imports although its text does not name it: all that stands below a room.
WALKED = {"provisioner.review.frame": "provisioner.review.checks"}


def name_of(path: Path) -> str:
    """The dotted name of a file below the checkout; a package is named without its `__init__`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def python_files(*folders: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if LEFT_OUT not in path.parts)


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the product and of its tests, by its dotted name; what tests install is a package of its own."""
    found = {name_of(path): path for path in python_files(*PACKAGES, "tests")}
    return {name: path for name, path in found.items() if name in _graph().modules}


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of this checkout that a module imports anywhere in its text; what they import in turn is not among them."""
    named = set(_graph().find_modules_directly_imported_by(module))
    if module in WALKED:
        named |= {found for found in modules() if is_in(found, WALKED[module])}
    return frozenset(found for name in named for found in _with_packages(name) if found != module)


def reached(start: Iterable[str], within: Iterable[str]) -> set[str]:
    """What these modules import, and what that imports, as far as it goes on in the rooms `within`."""
    rooms = tuple(within)
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        for found in imports_of(waiting.pop()) - seen:
            seen.add(found)
            if any(is_in(found, room) for room in rooms):
                waiting.append(found)
    return seen


def is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


@cache
def _graph() -> grimp.ImportGraph:
    """What import-linter reads: to parse all of it in Python takes ten times as long."""
    return grimp.build_graph(*PACKAGES, "tests", cache_dir=None)


def _with_packages(name: str) -> Iterator[str]:
    """The module, and the packages around it: they are imported with it."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        found = ".".join(parts[:length])
        if found in modules():
            yield found
