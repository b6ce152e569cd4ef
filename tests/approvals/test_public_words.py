"""What people read names no rule or promise by its number and no page of the makers, and uses no idiom of ours."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from drf_spectacular.generators import SchemaGenerator

ROOT = Path(__file__).parents[2]
INTERNAL = re.compile(
    r"\bS\d\d\b|\bpromises? \d|(?<!docs/)\b(?:design|security|security-rules|reports|approvals|provisioning|dependencies)\.md\b"
)
# Phrases that a native reader stumbles over, each seen here once: they may not come back.
IDIOMS = re.compile(
    r"by itself|goes on\b|\basks? anew|asked anew|somebody else's|the one that runs|\bby now\b|nobody knows who asked"
    r"|put(?:ting)? back|look(?:ed)? at it again|asked for by|have to be named|has to name",
    re.IGNORECASE,
)
COMMENT = re.compile(r"\{#.*?#\}|\{% comment %\}.*?\{% endcomment %\}", re.DOTALL)
DIRECTIVE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|<script.*?</script>", re.DOTALL)


def in_templates() -> Iterator[tuple[str, str]]:
    for path in sorted([*(ROOT / "templates").rglob("*.html"), *(ROOT / "approvals").rglob("*.html")]):
        yield str(path.relative_to(ROOT)), DIRECTIVE.sub(" ", COMMENT.sub(" ", path.read_text()))


@cache
def in_code() -> list[tuple[str, str]]:
    """Texts of the service, the library and its command line, without docstrings; logs and errors are among them."""
    found = []
    for path in sorted([*(ROOT / "approvals").rglob("*.py"), *(ROOT / "provisioner").rglob("*.py")]):
        if "migrations" in path.parts:
            continue
        tree = ast.parse(path.read_text())
        bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
        docs = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
        found += [
            (f"{path.relative_to(ROOT)}:{node.lineno}", node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
        ]
    return found


def in_texts_of_rules() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "provisioner").rglob("*.md")):
        yield str(path.relative_to(ROOT)), path.read_text()


def in_commands() -> Iterator[tuple[str, str]]:
    for name, app in get_commands().items():
        if app == "approvals":
            yield name, load_command_class(app, name).create_parser("pratique-manage", name).format_help()


def in_openapi() -> Iterator[tuple[str, str]]:
    """Docstrings of views and serializers are what programs' authors read."""
    yield "openapi", json.dumps(SchemaGenerator().get_schema(public=True))  # type: ignore[no-untyped-call]  # drf-spectacular has no types


@pytest.mark.parametrize("texts", [in_templates, in_code, in_texts_of_rules, in_commands, in_openapi])
def test_no_rule_or_promise_is_named_by_its_number(texts: Callable[[], Iterable[tuple[str, str]]]) -> None:
    found = list(texts())
    assert found
    assert {place: INTERNAL.findall(text) for place, text in found if INTERNAL.search(text)} == {}


def in_manuals() -> Iterator[tuple[str, str]]:
    """Every page by hand, the text of the rules, what alerts say, and the generated pages."""
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "provisioner").rglob("*.md"), *ROOT.glob("*.md")]):
        yield str(path.relative_to(ROOT)), path.read_text()
    for path in (ROOT / "deploy/prometheus/alerts.yaml", ROOT / "docs/generators/error_codes.yaml"):
        yield str(path.relative_to(ROOT)), path.read_text()


@pytest.mark.parametrize("texts", [in_templates, in_code, in_commands, in_openapi, in_manuals])
def test_no_idiom_of_ours_is_back(texts: Callable[[], Iterable[tuple[str, str]]]) -> None:
    found = list(texts())
    assert {place: IDIOMS.findall(text) for place, text in found if IDIOMS.search(text)} == {}
