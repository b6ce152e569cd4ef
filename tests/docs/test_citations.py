"""Every number that the code cites stands in docs/, and nobody but developers meets such numbers."""

from __future__ import annotations

import re

import pytest

from docs.generators import __main__ as generators
from docs.generators import decisions
from provisioner.review.rules import rule_ids
from tests.docs import cited
from tests.support.folders import ROOT

SECURITY_RULES = ROOT / "docs" / "security-rules.md"
PROMISES = ROOT / "docs" / "architecture" / "README.md"
FAMILIES = "|".join(sorted({rule.rsplit("-", 1)[0] for rule in rule_ids() if "-" in rule}, key=len, reverse=True))
# Numbers that stand for something else: a hash, an algorithm, a device.
NO_RULE = {"S256"}
# For developers only.
INTERNAL = re.compile(
    r"\bS\d\d\b|\b(?:design|security-rules|reports|approvals|provisioning|dependencies)\.md\b|\bpromises? \d"
)


def headings_of_security() -> dict[str, str]:
    """The text below each rule's heading, by its number."""
    parts = re.split(r"^### (S\d\d) .*$", SECURITY_RULES.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {number: text.split("\n## ")[0] for number, text in zip(parts[::2], parts[1::2], strict=True)}


def test_every_security_rule_that_is_cited_has_a_heading() -> None:
    found = cited.citations(re.compile(r"(?<![A-Za-z0-9])(S\d\d)(?![0-9A-Za-z])"), cited.files())
    assert {number: files for number, files in found.items() if number not in headings_of_security()} == {}


def test_every_security_rule_names_tests_that_exist_and_carry_its_number() -> None:
    names = set(re.findall(r"^(?:async )?def (test_\w+)", _all_tests(), re.MULTILINE))
    for number, text in headings_of_security().items():
        listed = re.findall(r"^- `(test_\w+)`$", text, re.MULTILINE)
        assert listed, f"{number} names no test"
        assert [name for name in listed if name not in names or number not in name] == []


def test_every_promise_that_is_cited_is_made() -> None:
    text = PROMISES.read_text("utf-8").split("## The promises", 1)[1]
    made = set(re.findall(r"^(\d+)\. \*\*", text, re.MULTILINE))
    found = cited.citations(re.compile(r"\b[Pp]romises? (\d+)\b"), cited.files())
    found |= cited.citations(re.compile(r"\b[Pp]romises \d+ and (\d+)\b"), cited.files())
    assert {number: files for number, files in found.items() if number not in made} == {}


def test_every_rule_of_reports_that_is_cited_is_listed() -> None:
    listed = ROOT / "docs" / "rules"
    known = set(re.findall(r"[A-Z]+-[A-Z0-9]\w*(?:-\d+)?", (listed / "README.md").read_text("utf-8")))
    known |= set(re.findall(r"\*\*([A-Z]+-\w+)\*\*", (listed / "not-reported.md").read_text("utf-8")))
    product = [
        file for file in cited.files() if file.relative_to(ROOT).parts[0] in ("approvals", "provisioner", "docs")
    ]
    found = cited.citations(re.compile(rf"(?<![\w-])((?:{FAMILIES})-\d\d[a-z]?)(?![\w-])"), product)
    assert {rule: files for rule, files in found.items() if rule not in known} == {}


def test_no_page_is_cited_by_a_name_that_no_page_has() -> None:
    """As `security-rules.md S05`, which is in docs/."""
    code = [file for file in cited.files() if file.suffix == ".py" and "docs" not in file.relative_to(ROOT).parts]
    found = cited.citations(re.compile(r"(?<![\w/.`'\"-])([a-z][\w-]*\.md)(?![\w`'\"])"), code)
    names = {file.name for file in (ROOT / "docs").rglob("*.md")}
    assert {page: files for page, files in found.items() if page not in names} == {}


def test_a_page_that_is_cited_for_a_security_rule_has_it() -> None:
    found = cited.citations(re.compile(r"([a-z][\w-]*\.md S\d\d)"), cited.files())
    assert {citation for citation in found if not citation.startswith("security-rules.md ")} == set()


def test_every_decision_that_is_cited_is_recorded() -> None:
    numbers = {record.number for record in decisions.records()}
    found = cited.citations(re.compile(r"\bdecisions? (\d{4})\b"), cited.files())
    assert {number: files for number, files in found.items() if number not in numbers} == {}


def test_every_page_that_is_cited_exists() -> None:
    found = cited.citations(re.compile(r"(?<![\w/.:])(docs/[\w/.-]+\.(?:md|py|yaml|png))"), cited.files())
    gone = {page: files for page, files in found.items() if not (ROOT / page).is_file()}
    # What the changelog says of a version stays as it was.
    assert {page: files for page, files in gone.items() if files != {"CHANGELOG.md"}} == {}


@pytest.mark.parametrize("page", sorted(generators.pages()))
def test_no_generated_page_cites_what_is_for_developers(page: str) -> None:
    if page.startswith("docs/reference/"):  # commands, the REST API, settings, fields and errors, as people meet them
        assert INTERNAL.findall((ROOT / page).read_text("utf-8")) == []


def _all_tests() -> str:
    return "\n".join(cited.text_of(file) for file in (ROOT / "tests").rglob("test_*.py"))
