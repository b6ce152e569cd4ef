"""Sources that went backwards, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.checks.bundle import provenance
from provisioner.values import Action, Course, EarlierVersion, Finding, Severity, SourceHistory, SourceMove
from tests.support.provisioner.contents import config_map, facts, judged_by, planned

MAIN = "branch main of https://example.com/app.git"
ENDS = "revision 3 has aa, this is bb"


def found(version: str = "", **history: object) -> list[Finding]:
    given = facts(planned(config_map("a"), Action.CREATE), history=SourceHistory(**history))  # type: ignore[arg-type]
    return judged_by(replace(given, content=replace(given.content, version=version)), [provenance.SOURCES_CHECK])


@pytest.mark.parametrize(
    ("course", "severity", "words"),
    [
        (Course.BACKWARD, Severity.DANGEROUS, f"{MAIN} goes back to an older commit: {ENDS}"),
        (
            Course.ASIDE,
            Severity.DANGEROUS,
            f"{MAIN} was rewritten (force-pushed), and the new commit does not follow the earlier one: {ENDS}",
        ),
        (
            Course.UNKNOWN,
            Severity.UNKNOWN,
            f"{MAIN} moved, and it could not be found out whether the new commit follows the earlier one (why): {ENDS}",
        ),
    ],
    ids=str,
)
def test_a_branch_that_does_not_move_forward_is_told(course: Course, severity: Severity, words: str) -> None:
    why = "why" if course is Course.UNKNOWN else ""
    (one,) = found(moves=(SourceMove(MAIN, "aa", "bb", "revision 3", course, why),))
    assert (one.rule, one.severity, one.message) == ("SRC-02", severity, words)


def test_forward_is_as_expected() -> None:
    assert not found(moves=(SourceMove(MAIN, "aa", "bb", "revision 3", Course.FORWARD),))


@pytest.mark.parametrize(
    ("version", "earlier", "is_lower"),
    [
        ("1.2.0", "1.10.0", True),
        ("1.10.0", "1.2.0", False),
        ("1.0.0-rc.1", "1.0.0", True),
        ("one", "1.0.0", False),
        ("3.14.3", "3.14.3+0.1746550072.p", True),
        ("3.14.3+0.999.p", "3.14.3+0.1746550072.p", True),
        ("3.14.3+0.1746550072.p", "3.14.3", False),
        ("3.14.2+2", "3.14.3+1", True),
    ],
)
def test_a_lower_version_is_told(version: str, earlier: str, is_lower: bool) -> None:
    known = EarlierVersion(earlier, "revision 3", has_releases=True)
    said = [one.message for one in found(version, versions=(known,))]
    words = f"The bundle claims version {version}, lower than {earlier} of revision 3"
    assert said == ([words] if is_lower else [])


@pytest.mark.parametrize(("version", "is_lower"), [("1.2.0+1", False), ("1.2.0", False), ("1.1.0+9", True)])
def test_builds_of_a_chart_have_no_order(version: str, is_lower: bool) -> None:
    assert bool(found(version, versions=(EarlierVersion("1.2.0+5", "revision 3"),))) is is_lower
