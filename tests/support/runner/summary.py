"""What a run says at its end, as text; everything here is pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from tests.support.runner.record import Record, Test
from tests.support.runner.sessions import Session

SLOWEST = 10
# A test of the first ring that takes longer on a quiet machine is named.
QUICK_SECONDS = 5
MOST_UNSTABLE = 5
SHOWN_MISSING = 50
# `tests`, and the two folders below it.
SHOWN_FOLDERS = 3
# Of `make test` on a quiet machine, with a minute for lint.
BUDGET_MINUTES = 17
# A folder that takes so much more than the kept table says has grown.
GROWN_FACTOR, GROWN_SECONDS = 1.3, 15


@dataclass(frozen=True)
class Outcome:
    """All of a run. `unstable` failed, and passed a second trial alone; `failed` did not, or got none.

    `processes` were left running and `files` lying in the temporary folder; `seconds` are those of the whole run.
    """

    session: Session
    unstable: Sequence[Test] = ()
    failed: Sequence[Test] = ()
    processes: Sequence[str] = ()
    files: Sequence[str] = ()
    seconds: float = 0.0
    faults: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", tuple(_faults(self)))

    @property
    def record(self) -> Record:
        return self.session.record

    @property
    def count(self) -> str:
        """The closing line, in a form that continuous integration reads."""
        passed = len(self.record.passed) + len(self.unstable)
        return f"{passed} passed, {len(self.failed)} failed"


def _faults(outcome: Outcome) -> Iterable[str]:
    """Why the run has failed, one sentence each; nothing if it passed."""
    record = outcome.record
    yield from _ending(outcome.session)
    if record.broken:
        yield f"{len(record.broken)} files could not be collected: {', '.join(sorted(record.broken))}."
    if outcome.failed:
        yield f"{len(outcome.failed)} tests failed."
    if len(outcome.unstable) > MOST_UNSTABLE:
        yield f"{len(outcome.unstable)} tests are unstable; at most {MOST_UNSTABLE} may be."
    # A test that fails does not come to its end, so that it may leave something.
    if outcome.processes and not record.failed:
        yield f"{len(outcome.processes)} processes were left running, and have been killed now."
    if outcome.files and not record.failed:
        yield f"{len(outcome.files)} files or folders were left in the temporary folder."


def _ending(session: Session) -> Iterable[str]:
    record = session.record
    if session.code is None:
        missing, running = len(record.missing), len(record.running)
        yield f"The deadline ended the run: {missing} tests were not begun, {running} were running."
    elif session.code not in (0, 1):
        yield f"pytest ended with exit code {session.code}."
    elif session.code == 1 and not record.failed and not record.broken:
        yield "pytest failed without naming a test."
    # Where worker after worker dies in one test, pytest-xdist drops those behind it.
    if session.code is not None and record.missing:
        yield f"{len(record.missing)} tests were not run."


@dataclass(frozen=True)
class Budget:
    """What a whole run of `make test` is held against: the seconds of each folder when somebody last agreed to them."""

    kept: Mapping[str, float]
    factor: float = 1.0


def closing(outcome: Outcome, *, name_above: float | None, budget: Budget | None = None) -> str:
    """What is printed when all is over; tests that took longer than `name_above` seconds are named."""
    return "\n\n".join(filter(None, (*_parts(outcome, name_above, budget), outcome.count)))


def _parts(outcome: Outcome, name_above: float | None, budget: Budget | None) -> Iterable[str]:
    record = outcome.record
    yield _block("SECONDS BY FOLDER", folders(record.tests.values()))
    if budget:
        yield _block("GROWN: make them cheaper, or agree to it", grown(record.tests.values(), budget.kept))
        yield _block("OVER THE BUDGET", over_budget(outcome.seconds / budget.factor))
    yield _block("SLOWEST TESTS", slowest(record.tests.values()))
    if name_above is not None:
        slow = [test for test in record.tests.values() if test.seconds > name_above]
        yield _block(
            f"LONGER THAN {name_above:.0f} s: make them cheaper, or mark them thorough", slowest(slow, len(slow))
        )
    yield _block("NOT RUN", shortened(record.missing))
    yield _block("NOT COLLECTED", [f"{file}\n{words}" for file, words in record.broken.items()])
    if outcome.session.code is None:
        yield _block("STACKS", [f"process {pid}\n{text}" for pid, text in outcome.session.stacks.items()])
        yield _block("RUNNING AT THE DEADLINE", record.running)
    yield _block("UNSTABLE (failed, and passed alone)", [f"{test.nodeid}\n{test.words}" for test in outcome.unstable])
    yield _block("FAILED", [f"{test.nodeid}\n{test.words}" for test in outcome.failed])
    yield _block("LEFT RUNNING", outcome.processes)
    yield _block("LEFT IN THE TEMPORARY FOLDER", outcome.files)
    yield _block("WHY THE RUN FAILED", outcome.faults)


def _block(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"== {title} ==", *lines]) if lines else ""


def slowest(tests: Iterable[Test], count: int = SLOWEST) -> list[str]:
    ordered = sorted(tests, key=lambda test: (-test.seconds, test.nodeid))
    return [f"{test.seconds:7.1f} s  {test.nodeid}" for test in ordered[:count]]


def seconds_by_folder(tests: Iterable[Test]) -> dict[str, list[float]]:
    """The seconds of each test, by folder, the dearest first."""
    found: dict[str, list[float]] = defaultdict(list)
    for test in tests:
        found["/".join(test.folder.split("/")[:SHOWN_FOLDERS])].append(test.seconds)
    return dict(sorted(found.items(), key=lambda item: (-sum(item[1]), item[0])))


def folders(tests: Iterable[Test]) -> list[str]:
    """Seconds of work and tests of each folder."""
    found = seconds_by_folder(tests)
    return [f"{sum(seconds):7.0f} s  {len(seconds):6} tests  {folder}" for folder, seconds in found.items()]


def grown(tests: Iterable[Test], kept: Mapping[str, float]) -> list[str]:
    """Folders that take longer than they did, at the pace at which the others go on this machine."""
    now = {folder: sum(seconds) for folder, seconds in seconds_by_folder(tests).items()}
    pace = median([now[folder] / kept[folder] for folder in now if kept.get(folder, 0) >= GROWN_SECONDS] or [1.0])
    expected = {folder: kept.get(folder, 0) * pace for folder in now}
    return [
        f"{now[folder]:7.0f} s instead of {seconds:.0f} s  {folder}"
        for folder, seconds in expected.items()
        if now[folder] > max(seconds * GROWN_FACTOR, seconds + GROWN_SECONDS)
    ]


def over_budget(seconds: float) -> list[str]:
    """What is said of a run that takes so long on a quiet machine."""
    minutes = seconds / 60
    words = f"{minutes:.1f} minutes on a quiet machine, where {BUDGET_MINUTES} are the most: see what has grown"
    return [words] if minutes > BUDGET_MINUTES else []


def shortened(names: Sequence[str]) -> list[str]:
    more = len(names) - SHOWN_MISSING
    return [*names[:SHOWN_MISSING], *([f"and {more} more"] if more > 0 else [])]


def unstable_page(tests: Sequence[Test], tree: str, at: datetime) -> str:
    """`test-results/unstable.md`: what to mend before anything else."""
    head = f"# Unstable tests\n\nTree {tree}, {at:%Y-%m-%d %H:%M} UTC. Each failed, and passed alone. Mend them first, at the root.\n"
    if not tests:
        return f"{head}\nNone.\n"
    return "\n".join([head, *(f"## {test.nodeid}\n\n```\n{test.words}\n```\n" for test in tests)])


def parts_page(outcome: Outcome, tree: str, at: datetime) -> str:
    """`test-results/thorough.md`: each part with its own figures."""
    by_part: dict[str, list[Test]] = defaultdict(list)
    for test in outcome.record.tests.values():
        by_part[part_of(test.nodeid)].append(test)
    not_begun: dict[str, int] = defaultdict(int)
    for nodeid in outcome.record.missing:
        not_begun[part_of(nodeid)] += 1
    unstable, failed = ({test.nodeid for test in tests} for tests in (outcome.unstable, outcome.failed))
    rows = [
        f"| {part} | {len(tests)} | {sum(test.seconds for test in tests) / 60:.1f} "
        f"| {_within(tests, unstable)} | {_within(tests, failed)} | {not_begun[part]} |"
        for part, tests in sorted(by_part.items())
    ]
    title = "All passed." if not outcome.faults else " ".join(outcome.faults)
    return "\n".join(
        [
            "# The thorough tests",
            "",
            f"Tree {tree}, {at:%Y-%m-%d %H:%M} UTC, {outcome.seconds / 60:.1f} minutes. {title}",
            "",
            "| part | tests | minutes of work | unstable | failed | not run |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _within(tests: Iterable[Test], names: set[str]) -> int:
    return sum(test.nodeid in names for test in tests)


def part_of(nodeid: str) -> str:
    """The folder below `tests` that a test is in: what `make thorough PART=…` names."""
    return nodeid.split("/")[1]


def proof(outcome: Outcome, ring: str, tree: str, factor: float) -> Mapping[str, object]:
    """`test-results/passed`: what was proved of which tree."""
    return {
        "tree": tree,
        "ring": ring,
        "minutes": round(outcome.seconds / 60, 1),
        "passed": len(outcome.record.passed) + len(outcome.unstable),
        "skipped": sum(test.was_skipped for test in outcome.record.tests.values()),
        "unstable": [test.nodeid for test in outcome.unstable],
        "patience": round(factor, 2),
    }
