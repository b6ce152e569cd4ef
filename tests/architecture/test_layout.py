"""Where things stand: few modules in a folder, helpers in tests/support, and the tests of a room where its name says."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.imports import PACKAGES, imports_of, is_in, modules, python_files, reached
from tests.support.folders import ROOT

MAX_MODULES = 20
# Lines below which a module need not be reached by a test: constants, and what others are put together from.
SMALL = 40
SUPPORT = "tests.support"
# What the tests in its room's folder do not import, and which tests try it.
TESTED_ELSEWHERE = {
    "approvals.catalogs.bundle_choice": "tests/approvals/ledger/test_upgrades.py",
    "approvals.catalogs.comparisons": "tests/approvals/services/test_comparisons.py",
    "approvals.catalogs.dependencies": "tests/approvals/api/test_dependencies.py",
    "approvals.catalogs.followed_packages": "tests/approvals/ledger/test_upgrades.py",
    "approvals.errors": "tests/approvals/api",
    "approvals.gate.reviewer_checks": "tests/approvals/services",
    "approvals.instruments": "tests/approvals/metrics",
    "approvals.jobs": "tests/approvals/working",
    "approvals.ledger.optionals": "tests/journeys/applying/test_optional.py",
    "approvals.ledger.strays": "tests/journeys/applied/test_strays.py",
    "approvals.models": "tests/approvals",
    "approvals.networks": "tests/approvals/proxies",
    "approvals.operators_file": "tests/approvals/proxies/test_declared.py",
    "approvals.rights": "tests/rights",
    "approvals.steps": "tests/journeys",
    "approvals.tasks": "tests/approvals/ledger",
    "approvals.wake": "tests/approvals/ledger",
    "provisioner.catalogs.spec_source": "tests/approvals/test_bundle_spec.py",
    "provisioner.live_reads": "tests/provisioner/pipeline",
    "provisioner.own_programs": "tests/provisioner/render/kustomize",
    "provisioner.regexes": "tests/provisioner/schema",
}
# What is tried through URLs, commands and settings, or in a process of its own, and so without an import.
TESTED_BY_ADDRESS = {
    "approvals.chat": "tests/approvals/chat",
    "approvals.management": "tests/approvals/management",
    "approvals.project": "tests/approvals/project",
    "approvals.selectors": "tests/approvals/web",
    "approvals.web": "tests/approvals/web",
    "provisioner.expressions": "tests/provisioner/expressions",
    "provisioner.sandbox": "tests/contract",
}


def is_test(module: str) -> bool:
    return module.rpartition(".")[2].startswith("test_")


def all_tests() -> list[str]:
    return [name for name in modules() if is_in(name, "tests")]


def test_no_folder_holds_more_modules_than_a_reader_can_take_in() -> None:
    held = Counter(path.parent for path in python_files(*PACKAGES, "tests") if path.name != "__init__.py")
    crowded = {str(folder.relative_to(ROOT)): count for folder, count in held.items() if count > MAX_MODULES}
    assert crowded == {}, "give a subject of these folders a folder of its own"


def test_a_folder_says_what_it_is_for() -> None:
    faces = {name: path for name, path in modules().items() if path.name == "__init__.py" and not is_in(name, "tests")}
    assert [name for name, path in faces.items() if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_the_product_imports_nothing_of_its_tests() -> None:
    product = (name for name in modules() if not is_in(name, "tests"))
    assert [name for name in product if any(is_in(found, "tests") for found in imports_of(name))] == []


def test_no_module_of_tests_imports_a_test_module() -> None:
    found = {name: sorted(filter(is_test, imports_of(name))) for name in all_tests()}
    assert {name: tests for name, tests in found.items() if tests} == {}, f"move what is shared to {SUPPORT}"


def test_what_one_folder_shares_with_another_stands_in_support() -> None:
    """A helper beside tests is for the tests of its folder and of those below; so is a conftest."""
    strangers = {
        (name, helper)
        for name in all_tests()
        for helper in imports_of(name)
        if is_in(helper, "tests") and not is_in(helper, SUPPORT) and modules()[helper].name != "__init__.py"
        if not is_in(name, helper.rpartition(".")[0])
    }
    assert strangers == set(), f"move these helpers to {SUPPORT}"


def test_helpers_of_support_need_nothing_of_the_tests() -> None:
    outside = {
        (name, found)
        for name in all_tests()
        if is_in(name, SUPPORT)
        for found in imports_of(name)
        if is_in(found, "tests") and not is_in(found, SUPPORT) and found != "tests"
    }
    assert outside == set()


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def is_large(module: str) -> bool:
    return len(modules()[module].read_text().splitlines()) > SMALL


def named_tests(*places: str) -> list[str]:
    """The test modules at these paths of the checkout, and below them."""
    found = (name for place in places for name in modules() if is_in(name, place.replace("/", ".").removesuffix(".py")))
    return [name for name in found if is_test(name)]


def has_tests_of_its_name(module: str) -> bool:
    package, _, stem = module.rpartition(".")
    return f"tests.{package}.test_{stem}" in modules() or bool(named_tests(f"tests/{module.replace('.', '/')}"))


@cache
def reached_in_room(room: str) -> set[str]:
    """What the tests in the room's folder come to without leaving the room."""
    return reached(named_tests(f"tests/{room.replace('.', '/')}"), [room, SUPPORT])


def listed_at(module: str) -> list[str]:
    return [place for listed, place in TESTED_ELSEWHERE.items() if is_in(module, listed)]


@cache
def unreached() -> list[str]:
    large = (name for name in modules() if name.split(".")[0] in PACKAGES and is_large(name))
    return [name for name in large if not has_tests_of_its_name(name) and name not in reached_in_room(room_of(name))]


def test_every_module_has_tests_where_its_name_says_or_is_listed() -> None:
    lost = [name for name in unreached() if not listed_at(name) and room_of(name) not in TESTED_BY_ADDRESS]
    assert lost == [], "write tests/<its folder>/test_<its name>.py, or say in TESTED_ELSEWHERE which tests try it"


@pytest.mark.parametrize("listed", TESTED_ELSEWHERE)
def test_what_is_listed_is_reached_from_the_tests_that_are_named(listed: str) -> None:
    place = TESTED_ELSEWHERE[listed]
    assert Path(ROOT / place).exists(), place
    tried = [name for name in unreached() if is_in(name, listed)]
    assert tried, f"{listed} need not be listed: its own tests reach it"
    assert sorted(set(tried) - reached(named_tests(place), PACKAGES)) == []


@pytest.mark.parametrize("room", TESTED_BY_ADDRESS)
def test_a_room_that_is_tried_by_its_addresses_has_tests_there(room: str) -> None:
    assert named_tests(TESTED_BY_ADDRESS[room])
    assert any(is_in(name, room) for name in unreached()), f"{room} need not be listed: its own tests reach it"
