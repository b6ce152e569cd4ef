"""One reader, one judge: nobody else asks what the reader asks, and the page of every no is the table of the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import approvals
from approvals.gate.remedies import RefusalKind

ROOT = Path(approvals.__file__).parent
PAGE = ROOT.parent / "docs/gate.md"
READERS = ("gate", "access")
# Who may decide, use the account, accept findings, may have asked, and is known by groups that count.
RIGHTS = {
    "asker_of",
    "may_approve",
    "may_override",
    "may_use_account",
    "no_longer_current",
    "still_known_of",
    "why_author",
}
# The evaluator of policies and constraints; a policy that is saved is compiled, and asked about nothing.
EVALUATES = {
    *("gate/deciding_objects.py", "gate/live_spec.py", "gate/policies.py"),
    *("ledger/deciding/deciding_objects.py", "services/policies/rows.py"),
}
# What people are told of policies, by the facts that each may know: nothing is decided by it.
EXPLAINS = {"gate/explanation.py", "services/policies/replays.py"}


def modules_with(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """Of those alone whose text has all the words: to parse the others takes seconds."""
    for path in sorted(ROOT.rglob("*.py")):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text()
        if "/migrations/" not in f"/{name}" and all(word in text for word in words):
            yield name, ast.parse(text)


def asked_of_access(tree: ast.AST) -> set[str]:
    """What is reached through approvals.access, or imported from it."""
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    found = {node.attr for node in used if isinstance(node.value, ast.Name) and node.value.id == "access"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("approvals.access"):
            found |= {alias.name for alias in node.names}
    return found


def calls_in(tree: ast.AST, name: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if name in (getattr(call.func, "id", ""), getattr(call.func, "attr", ""))]


def imports_of(tree: ast.AST, module: str) -> set[str]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == module]
    return {alias.name for node in found for alias in node.names}


def test_nobody_else_asks_about_the_rights_of_reviewers_and_requesters() -> None:
    others = {
        name: asked_of_access(tree) & RIGHTS for name, tree in modules_with("access") if not name.startswith(READERS)
    }
    assert others
    assert {name: found for name, found in others.items() if found} == {}


def test_nobody_else_reads_the_live_deployment_to_decide_by_it() -> None:
    """Doors read it to write it (services); the machine only through the gate."""
    machine = ("steps/", "ledger/", "working/", "jobs.py", "tasks.py", "gate/")
    readers = [name for name, tree in modules_with("ObjectRef") if name.startswith(machine) and reads_deployment(tree)]
    assert readers == ["gate/live_spec.py"]


def reads_deployment(tree: ast.AST) -> bool:
    refs = calls_in(tree, "ObjectRef")
    return any("BundleDeployment" in [getattr(part, "value", "") for part in call.args] for call in refs)


def test_nobody_else_evaluates_policies_or_counts_reviews() -> None:
    module, explaining = "provisioner.expressions.evaluator", "approvals.gate.explanation"
    evaluators = {name for name, tree in modules_with(module) if imports_of(tree, module) & {"ask", "ask_all"}}
    assert evaluators == EVALUATES | EXPLAINS
    told = {name for name, tree in modules_with(explaining) if explaining in _imported(tree).split()}
    assert {name for name in told if not name.startswith(("services/", "web/", "api/"))} == set()
    saving = ast.parse((ROOT / "services/policies/rows.py").read_text())
    assert [len(call.args) for call in calls_in(saving, "ask")] == [2], "no facts are asked about"
    counting = {name for name, tree in modules_with("decide") if "decide" in imports_of(tree, "approvals.policy")}
    assert counting == {"gate/people.py"}


def test_only_the_gate_makes_the_subject_of_a_round() -> None:
    making = {
        name
        for name, tree in modules_with("ReviewSubject", "digests")
        if calls_in(tree, "ReviewSubject") and "ledger.digests" in _imported(tree)
    }
    assert making == {"gate/reader.py"}


def _imported(tree: ast.AST) -> str:
    return " ".join(node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))


def test_the_room_is_small() -> None:
    assert len(list((ROOT / "gate").glob("*.py"))) <= 20


@pytest.mark.parametrize("kind", RefusalKind)
def test_the_manual_holds_every_kind_of_no(kind: RefusalKind) -> None:
    row = kind.value
    remedy = row.remedy.format(name="NAME", cluster="CLUSTER", number="NUMBER").replace("|", "\\|")
    line = f"| `{row.code}` | {row.when} | {row.next} | {remedy} |"
    assert line in PAGE.read_text().splitlines()
