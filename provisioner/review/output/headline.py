"""The few sentences at the top of a report: the worst new thing first, in words; how much of everything, last."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from provisioner.review.base.grouping import Statement
from provisioner.review.base.messages import message_of, said_anywhere
from provisioner.sentences import and_more, some_phrases
from provisioner.values import (
    RENAME,
    UNTOLD,
    Action,
    Finding,
    ObjectIdentity,
    Plan,
    Report,
    Section,
    Severity,
    count_objects,
    worst_first,
)

MAX_SENTENCES, TOTALS = 5, 2  # the last ones say how much there is of everything
MAX_CHARACTERS = 240
# Of what is critical or unknown (S24). No message of ours is as long once its names are shortened.
MAX_WHOLE = 4000
MAX_WORD = 60
_HEAD, _TAIL = 40, 12
_WORTH_A_SENTENCE = Severity.DANGEROUS
_NEVER_CUT = (Severity.CRITICAL, Severity.UNKNOWN)
# What others may do was so before, whatever a request is about.
_OF_OTHERS = "PRE-11"
_QUOTED = re.compile(r"`[^`]*`")
CHANGING = (Action.UPDATE, Action.REPLACE, Action.ADOPT)


def headline(
    findings: Sequence[Finding],
    plan: Plan,
    *,
    let_go: int = 0,
    hooks: Collection[ObjectIdentity] = (),
    hides_secrets: bool = False,
    about: str = "",
) -> tuple[str, ...]:
    """At most five sentences about `findings`, which are in the order of a report.

    `let_go` is how many objects stay that were the deployment's and will not be, `hooks` which objects run as hooks.
    With `hides_secrets` it says of Secrets that exist only how many they are. `about` stands in place of what happens
    to objects.
    """
    counted = count_objects(plan.actions, hides_secrets=hides_secrets)
    running = sum(planned.action is Action.CREATE and planned.ref.identity in hooks for planned in plan.actions)
    changes = objects_in_words(counted, running)
    objects = f"{changes}." if changes else f"No {'other ' if counted[UNTOLD] else ''}object changes."
    objects += _untold(counted[UNTOLD])
    if let_go:
        stay, them = ("stay", "them") if let_go > 1 else ("stays", "it")
        objects += f" {_number(let_go, 'object')} {stay} in the cluster and Pratique no longer manages {them}."
    totals = [about or objects, _severities(findings)]
    new = [finding for finding in findings if finding.is_new and finding.severity.is_at_least(_WORTH_A_SENTENCE)]
    outages = [
        finding for finding in new if finding.section is Section.AVAILABILITY and finding.severity not in _NEVER_CUT
    ]
    worst = _sentences(finding for finding in new if finding not in outages)
    if outages:
        # One sentence for all that stops, does not start or is no longer reached: it is always among the first.
        first, *others = _sentences(outages)
        more = f", {and_more(len(others))}" if others else ""
        place = 0 if new[0] in outages else min(len(worst), MAX_SENTENCES - TOTALS - 1)
        worst.insert(place, f"Availability: {first.removesuffix('.')}{more}.")
    if not worst:
        still = (finding for finding in findings if finding.severity.is_at_least(_WORTH_A_SENTENCE))
        known = _sentences(finding for finding in still if finding.rule != _OF_OTHERS)
        worst = [f"No new risk. Already the case: {known[0]}"] if known else []
    return (*worst[: MAX_SENTENCES - TOTALS], *totals)


def _sentences(findings: Iterable[Finding]) -> list[str]:
    """One sentence per account, however many powers it gains, then one per object, then the rest; the worst first.

    What is said of several objects in the same words is said once, with their number.
    """
    accounts: dict[str, Finding] = {}
    powers: dict[str, list[str]] = {}
    groups: dict[tuple[str, str], list[Finding]] = {}
    for position, one in enumerate(findings):
        subject, power = str(one.evidence.get("subject") or ""), str(one.evidence.get("power") or "")
        if subject and power and not one.server_words:
            powers.setdefault(subject, []).append(power)
            if subject in accounts:
                continue
            accounts[subject] = one
        # What is withheld is told in the same words of each.
        said = "withheld" if one.is_withheld else said_anywhere(one) or str(position)
        groups.setdefault((one.rule, said), []).append(one)
    ranked: list[tuple[int, bool, str]] = []
    seen: set[object] = set()
    for group in groups.values():
        key = group[0].ref.identity if group[0].ref else None
        ranked.append((group[0].severity.rank, key in seen, _of_group(group, powers)))
        if key:
            seen.add(key)
    return list(dict.fromkeys(words for *_, words in sorted(ranked, key=lambda it: it[:2])))


def _of_group(group: list[Finding], powers: dict[str, list[str]]) -> str:
    leading = group[0]
    words = leading.message.splitlines()[0].rstrip(".")
    subject = str(leading.evidence.get("subject") or "")
    if leading.evidence.get("power") and not leading.server_words:
        words = some_phrases([words, *dict.fromkeys(powers[subject][1:])])
    words = shortened(words, leading.severity)
    return f"{words} ({and_more(len(group) - 1, 'like this')})." if len(group) > 1 else f"{words}."


def shortened(words: str, severity: Severity) -> str:
    """Words of more than MAX_CHARACTERS, whose long names lose their middle; what is not critical or unknown is then
    cut at its end, too.

    A sentence of critical and unknown findings keeps all that it says.
    """
    if len(words) <= MAX_CHARACTERS:
        return words
    cut = _QUOTED.sub(lambda name: f"`{_without_middle(name[0][1:-1])}`", words)
    cut = " ".join(_without_middle(word) for word in cut.split())
    most = MAX_WHOLE if severity in _NEVER_CUT else MAX_CHARACTERS
    return re.sub(r"[:;,] …$", " …", textwrap.shorten(cut, most, placeholder=" …"))


def _without_middle(name: str) -> str:
    return name if len(name) <= MAX_WORD else f"{name[:_HEAD]}…{name[-_TAIL:]}"


def _severities(findings: Iterable[Finding]) -> str:
    """Every severity that occurs, always stated (S24)."""
    counted = Counter(finding.severity for finding in findings)
    new = Counter(finding.severity for finding in findings if finding.is_new)
    words = [
        f"{counted[severity]} {severity}{'' if new[severity] == counted[severity] else f' ({new[severity]} new)'}"
        for severity in Severity
        if counted[severity]
    ]
    return f"Findings: {', '.join(words)}." if words else "Findings: none."


def objects_in_words(counted: Mapping[str, int], running: int = 0) -> str:
    """`2 objects to change, 1 to create`, of which `running` as hooks, as count_objects has counted; "" for none."""
    told = [
        (sum(counted[action] for action in CHANGING), "to change"),
        (counted[Action.CREATE], f"to create{_as_hooks(running, counted[Action.CREATE])}"),
        (counted[Action.DELETE], "to delete"),
        (counted[Action.RERUN], "to run again as a hook"),
        (counted[RENAME], "to rename"),
    ]
    first, *others = [(count, words) for count, words in told if count] or [(0, "")]
    rest = "".join(f", {count} {words}" for count, words in others)
    return f"{_number(first[0], 'object')} {first[1]}{rest}" if first[0] else ""


def _untold(count: int) -> str:
    exist, they, them = ("exist", "they change", "them") if count > 1 else ("exists", "it changes", "it")
    told = f"whether {they} is told to people who may get {them}"
    return f" {_number(count, 'Secret')} {exist}: {told}." if count else ""


def _as_hooks(count: int, total: int) -> str:
    words = "as hooks" if count > 1 else "as a hook"
    return (f" {words}" if count == total else f" ({count} {words})") if count else ""


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def with_own_words(finding: Finding) -> Finding:
    """`finding` with what its check or the API server said as its message."""
    if not finding.server_words:
        return finding
    words = finding.server_words if finding.is_withheld else f"{finding.message}: {finding.server_words}"
    told = replace(finding, message=words, server_words="", is_withheld=False)
    # What the API server said of one object is no other's: such a sentence is made of no template.
    return told if told.variant and message_of(told) == words else replace(told, variant="", notes=())


def without_withholding(finding: Finding) -> Finding:
    """`finding` with the words of its check; what the API server said stays beside them."""
    return with_own_words(finding) if finding.is_withheld else finding


def own_headline(findings: Sequence[Finding], public: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """The headline of `findings`, of which some have their own words; its totals are those that everybody reads."""
    told = headline(worst_first(findings), plan)
    return (*told[:-TOTALS], *public[-TOTALS:])


def in_own_words(report: Report) -> Report:
    """The report for somebody who may see everything that it is made of."""
    findings: Iterable[Finding] = map(with_own_words, report.findings)
    told = own_headline(list(findings), report.headline, report.plan)
    return replace(report, headline=told, findings=tuple(map(without_withholding, report.findings)))


# The short report takes the first of BREVITIES by which it has at most so many lines, else the last.
MAX_LINES = 100


@dataclass(frozen=True, slots=True)
class Brevity:
    """How much is told before a number stands for the rest; of what is critical or unknown all is.

    Statements of one rule, fields of one statement and lines of its objects, whether a value that is no longer taken is
    told, and whether each rule about CRDs is one entry.
    """

    breaking: int = 5
    others: int = 3
    fields: int = 6
    reach_lines: int = 2
    has_examples: bool = True
    has_entries: bool = False


BREVITIES = (
    Brevity(),
    Brevity(3, 2, 4),
    Brevity(3, 2, 4, has_examples=False, has_entries=True),
    Brevity(2, 1, 1, 1, has_examples=False, has_entries=True),
)


@dataclass(slots=True)
class Brief:
    """A short report, and how many places it leaves to a number."""

    brevity: Brevity
    places: int = 0

    def kept(self, told: list[Statement]) -> list[Statement]:
        """The first of statements of one rule; one more takes no more room than to say that it is left out."""
        most = self.brevity.breaking if told[0].first.severity is Severity.BREAKING else self.brevity.others
        return told[:most] if len(told) > most + 1 else told
