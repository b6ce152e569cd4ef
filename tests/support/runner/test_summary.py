"""What is said of a run: pure texts of facts."""

from __future__ import annotations

import pytest

from tests.support.runner.record import Record, Test
from tests.support.runner.sessions import Session
from tests.support.runner.summary import Budget, Outcome, closing, folders, grown, part_of, slowest

GOOD = Test("tests/chaos/test_a.py::test_one", seconds=2.0, is_over=True)
BAD = Test("tests/approvals/deep/down/test_b.py::test_two", seconds=7.0, is_over=True, has_failed=True, words="why")
UNKNOWN = Test("tests/chaos/test_a.py::test_three")


def session(*tests: Test, code: int | None = 0, collected: frozenset[str] = frozenset()) -> Session:
    return Session(Record({test.nodeid: test for test in tests}, collected), code, {})


def test_a_run_in_which_all_passed_has_no_faults() -> None:
    assert Outcome(session(GOOD)).faults == ()


def test_five_unstable_tests_are_borne_and_six_are_not() -> None:
    five = Outcome(session(BAD, code=1), unstable=[BAD] * 5)
    six = Outcome(session(BAD, code=1), unstable=[BAD] * 6)
    assert five.faults == ()
    assert six.faults == ("6 tests are unstable; at most 5 may be.",)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(session(BAD, code=1), failed=[BAD]), "1 tests failed."),
        (Outcome(session(GOOD, code=1)), "pytest failed without naming a test."),
        (Outcome(session(GOOD, code=3)), "pytest ended with exit code 3."),
        (Outcome(session(GOOD, collected=frozenset({"x"}))), "1 tests were not run."),
        (Outcome(session(code=5)), "pytest ended with exit code 5."),
        (
            Outcome(session(UNKNOWN, code=None, collected=frozenset({UNKNOWN.nodeid, "x"}))),
            "The deadline ended the run: 1 tests were not begun, 1 were running.",
        ),
        (Outcome(session(GOOD), processes=["1 sleep"]), "1 processes were left running, and have been killed now."),
        (Outcome(session(GOOD), files=["x"]), "1 files or folders were left in the temporary folder."),
        (Outcome(Session(Record(broken={"tests/x.py": "no"}), 1, {})), "1 files could not be collected: tests/x.py."),
    ],
)
def test_a_run_that_failed_says_why(outcome: Outcome, words: str) -> None:
    assert outcome.faults == (words,)
    assert words in closing(outcome, name_above=None)


def test_what_a_failed_test_left_is_named_and_is_no_fault_of_its_own() -> None:
    outcome = Outcome(session(BAD, code=1), unstable=[BAD], processes=["1 sleep"], files=["left"])
    assert outcome.faults == ()
    assert "1 sleep" in closing(outcome, name_above=5)
    assert "left" in closing(outcome, name_above=5)


def test_the_closing_line_counts_what_passed_alone_as_passed() -> None:
    outcome = Outcome(session(GOOD, BAD, code=1), unstable=[BAD])
    assert closing(outcome, name_above=5).splitlines()[-1] == "2 passed, 0 failed"


def test_tests_of_the_first_ring_that_take_long_are_named() -> None:
    said = closing(Outcome(session(GOOD, BAD)), name_above=5).partition("LONGER THAN 5 s")[2]
    assert BAD.nodeid in said
    assert GOOD.nodeid not in said


def test_folders_and_tests_come_the_dearest_first() -> None:
    assert [line.split()[-1] for line in folders([GOOD, BAD])] == ["tests/approvals/deep", "tests/chaos"]
    assert [line.split()[-1] for line in slowest([GOOD, BAD], 1)] == [BAD.nodeid]


def test_a_part_is_the_folder_below_tests() -> None:
    assert part_of(BAD.nodeid) == "approvals"


def test_a_folder_that_grew_is_named_and_a_slower_machine_is_no_growth() -> None:
    kept = {"tests/a": 100, "tests/b": 100, "tests/c": 100, "tests/small": 1}
    took = {"tests/a": 210, "tests/b": 200, "tests/c": 290, "tests/small": 14, "tests/new": 40}
    tests = [Test(f"{folder}/test_x.py::test_x", seconds=seconds, is_over=True) for folder, seconds in took.items()]
    assert [line.split()[-1] for line in grown(tests, kept)] == ["tests/c", "tests/new"]
    said = closing(Outcome(session(*tests), seconds=17 * 60 * 2 + 60), name_above=5, budget=Budget(kept, factor=2.0))
    assert "290 s instead of 210 s  tests/c" in said
    assert "17.5 minutes on a quiet machine" in said
    assert "OVER" not in closing(Outcome(session(*tests), seconds=17 * 60), name_above=5, budget=Budget(kept))
