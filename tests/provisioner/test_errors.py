"""Errors with codes stand in two files, each code once; docs/generators/error_codes.yaml says what to do about each."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterator

import approvals.errors
import provisioner.errors
from tests.support.folders import ROOT
from tests.support.syntax_trees import trees_with

FILES = {"provisioner/errors.py", "approvals/errors.py"}
CODED = sorted(
    {
        one
        for module in (provisioner.errors, approvals.errors)
        for one in vars(module).values()
        if inspect.isclass(one) and issubclass(one, Exception) and "code" in vars(one)
    },
    key=lambda one: (one.__module__, one.__name__),
)


def codes() -> Iterator[tuple[str, str]]:
    """The code that a class body writes out, with its file."""
    for path, tree in trees_with(r"^ +code =", ROOT / "provisioner", ROOT / "approvals"):
        classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
        for statement in (one for node in classes for one in node.body if isinstance(one, ast.Assign)):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            if names == ["code"] and isinstance(statement.value, ast.Constant):
                yield str(statement.value.value), str(path.relative_to(ROOT))


def test_each_code_is_written_once_and_in_a_file_of_errors() -> None:
    found = list(codes())
    assert {path for _, path in found} == FILES
    assert [code for code, count in Counter(code for code, _ in found).items() if count > 1] == []
    assert {code for code, _ in found} == {one.code for one in CODED}


def test_an_error_says_what_it_means() -> None:
    assert [one.__name__ for one in CODED if not (vars(one).get("__doc__") or "").strip()] == []


def test_what_to_do_about_an_error_stands_in_the_docs_alone() -> None:
    assert [one.__name__ for one in CODED if "advice" in vars(one)] == [], "docs/generators/error_codes.yaml says it"
