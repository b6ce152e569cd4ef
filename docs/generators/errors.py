"""docs/reference/errors.md: every stable code, where it appears, what it means and what to do.

Codes, statuses and the gate's words are read from the code. Meanings and actions stand in error_codes.yaml, which has
to hold exactly the codes that are found.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from approvals.errors import Refused
from approvals.gate.remedies import RefusalKind
from docs.generators import markdown, rest
from provisioner.errors import PratiqueError, TryLater

ROOT = Path(__file__).resolve().parents[2]
WORDS = Path(__file__).with_name("error_codes.yaml")
# Where codes are raised or recorded. The sandbox has no codes of its own; migrations hold words of the past.
ROOMS = ("approvals", "provisioner")
LEFT_OUT = {"migrations", "sandbox", "management"}
# Pages answer with these, which no operation of the REST API does.
OF_PAGES = {"already-reviewed", "issuer-away", "refused", "sign-in-failed", "too-serious"}
# Refusals that a request can end or wait with, too.
RECORDED = {"could-not-ask", "revoked"}
# What a class constant, a keyword or an entry of a record is called that holds a code.
CODE = re.compile(r"[a-z]+(-[a-z]+)+")
CODE_NAMES = {"code", "problem_code", "CODE"}
# To parse a module takes long: only those are that can hold one.
CODE_GIVEN = re.compile(rf"\b(?:{'|'.join(sorted(CODE_NAMES))})(?: *=|[\"'] *:)")
CONSTANT = re.compile(rf'^(_?[A-Z][A-Z0-9_]*) = "({CODE.pattern})"$', re.MULTILINE)

INTRODUCTION = (
    (
        "Pages, the REST API, mirrored requests and the command line give a stable code with every error. Programs can "
        "depend on the code; the words beside it can change. The REST API sends errors as `application/problem+json` "
        "(RFC 9457), with the code in `code`."
    ),
    (
        "*Status* is the HTTP status where the code answers a call. Only what is marked *yes* under *tried again* is "
        "tried again by Pratique itself."
    ),
)


@dataclass(frozen=True, slots=True)
class Meaning:
    meaning: str
    action: str


class CodesDiffer(Exception):
    """error_codes.yaml lacks a code, or has one that nothing raises; the message lists them."""


def page() -> str:
    lines = markdown.heading_of_page(
        "Errors",
        "approvals/errors.py, provisioner/errors.py, the gate and docs/generators/error_codes.yaml",
        *INTRODUCTION,
    )
    lines += ["## Codes", ""]
    lines += markdown.table(
        ("code", "status", "meaning", "what to do", "tried again"),
        (
            (f"`{code}`", _statuses(code), said.meaning, said.action, "yes" if code in retried() else "")
            for code, said in sorted(words().items())
        ),
    )
    lines += ["## Why a request waits or ends", ""]
    lines += ["The [gate](../gate.md) gives these reasons, each with a code. *Then* says what follows:", ""]
    lines += ["- *wait*: the request continues automatically as soon as the reason is gone."]
    lines += ["- *report again*: a new round is made, which reviewers look at."]
    lines += ["- *deny*: the request is denied.", "- *end*: the request fails; ask for the change again.", ""]
    lines += markdown.table(("when", "code", "then", "what to do"), _gate_rows())
    return markdown.page(lines)


@cache
def words() -> Mapping[str, Meaning]:
    """What is said of each code. Raises CodesDiffer."""
    read: dict[str, dict[str, str]] = yaml.safe_load(WORDS.read_text("utf-8"))
    if differ := sorted(set(read) ^ (codes_of_refusals() | codes_of_problems())):
        raise CodesDiffer(f"{WORDS.name}: add what is new and remove what is gone: {', '.join(differ)}")
    return {code: Meaning(**it) for code, it in read.items()}


def codes_of_refusals() -> set[str]:
    """Of the REST API by its description, and of the pages."""
    return set(rest.statuses_by_code()) | OF_PAGES


@cache
def codes_of_problems() -> set[str]:
    """Of all classes of errors, and of all records of a problem, but for what only refuses a call."""
    refusals = {it.code for it in _subclasses(Refused)} | codes_of_refusals()
    of_errors = {it.code for it in _subclasses(PratiqueError)}
    at_the_gate = {kind.value.code for kind in RefusalKind}
    return of_errors | (codes_in_code() - refusals - at_the_gate) | RECORDED


@cache
def codes_in_code() -> set[str]:
    """Every text that is given as a code anywhere."""
    texts = (file.read_text("utf-8") for file in _modules())
    return {code for text in texts if CODE_GIVEN.search(text) for code in codes_in(ast.parse(text))}


def codes_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and any(isinstance(it, ast.Name) and it.id in CODE_NAMES for it in node.targets)
        ) or (isinstance(node, ast.keyword) and node.arg in CODE_NAMES):
            yield from _text(node.value)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in CODE_NAMES:
                    yield from _text(value)


@cache
def retried() -> frozenset[str]:
    return frozenset(it.code for it in _subclasses(TryLater))


def _statuses(code: str) -> str:
    known = rest.statuses_by_code().get(code) or {it.status for it in _subclasses(Refused) if it.code == code}
    return ", ".join(str(status) for status in sorted(known))


def _gate_rows() -> Iterator[tuple[str, str, str, str]]:
    for kind in RefusalKind:
        row = kind.value
        remedy = row.remedy.format(name="NAME", cluster="CLUSTER", number="NUMBER")
        yield row.when, f"`{row.code}`", row.next, remedy


def _subclasses(base: Any) -> Iterator[Any]:
    for file in _modules():  # a class is known once its module was imported
        if "code = " in file.read_text("utf-8"):
            import_module(".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    found = [base]
    for one in found:
        found += [it for it in one.__subclasses__() if it not in found]
    yield from (it for it in found if it.__module__.split(".")[0] in ROOMS)


@cache
def _modules() -> tuple[Path, ...]:
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    return tuple(file for file in files if not LEFT_OUT & set(file.relative_to(ROOT).parts))


def _text(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _constants().get(node.id if isinstance(node, ast.Name) else node.attr, ())


@cache
def _constants() -> Mapping[str, tuple[str, ...]]:
    """The texts of all constants of modules that stand for a code, by their names."""
    found: dict[str, tuple[str, ...]] = {}
    for file in _modules():
        for name, code, _ in CONSTANT.findall(file.read_text("utf-8")):
            found[name] = (*found.get(name, ()), code)
    return found
