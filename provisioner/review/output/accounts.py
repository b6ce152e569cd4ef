"""What accounts may newly do, told by account: one entry, with the roles that it comes from. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from provisioner.review.base.messages import subject_and_words
from provisioner.review.base.statements import NEVER_FOLDED
from provisioner.review.rules import messages_of
from provisioner.sentences import some_phrases
from provisioner.values import Finding

MAX_WAYS, MAX_TOLD = 3, 2
_ALL_RIGHTS = "RB-DIFF"


@dataclass(frozen=True, slots=True)
class AccountEntry:
    """One account, as sentences name it, with its `findings`, the worst first."""

    account: str
    findings: tuple[Finding, ...]

    @property
    def ways(self) -> str:
        """The roles that give all of it, each with its rules: `ClusterRole web, rules 1 and 3`."""
        rules: dict[str, set[int]] = {}
        for finding in self.findings:
            for way in finding.evidence.get("by") or ():
                kind, _, name = str(way["origin"]).partition(" ")
                rules.setdefault(f"{kind.partition('.')[0]} {name}", set()).add(int(way["rule"]) + 1)
        told = [
            f"{role}, rule{'s' if len(of) > 1 else ''} {_in_runs(sorted(of))}" for role, of in sorted(rules.items())
        ]
        return some_phrases(told, MAX_WAYS)

    @property
    def words(self) -> str:
        """The entry as a sentence, with all that is critical or unknown, and how much else there is (S24)."""
        told = [words_in_entry(one) for one in self.findings]
        most = max(sum(one.severity in NEVER_FOLDED for one in self.findings), MAX_TOLD)
        by = f", by {self.ways}" if self.ways else ""
        return f"{self.account} will newly be able to {some_phrases(told, most)}{by}"


def account_entries(findings: Iterable[Finding]) -> tuple[list[AccountEntry], list[Finding]]:
    """The entries, the account of the worst finding first, and the findings that belong to none.

    Of an account that gains rights and no power, the sentence of the finding says which rights.
    """
    told, entries = list(findings), dict[object, list[Finding]]()
    for one in told:
        if one.ref is not None and one.is_new and words_in_entry(one):
            entries.setdefault(one.ref.identity, []).append(one)
    entries = {key: found for key, found in entries.items() if any(one.rule != _ALL_RIGHTS for one in found)}
    in_entries = {id(one) for found in entries.values() for one in found}
    rest = [one for one in told if id(one) not in in_entries]
    made = [
        AccountEntry(subject_and_words(found[0])[0], tuple(sorted(found, key=lambda it: (it.severity.rank, it.rule))))
        for found in entries.values()
    ]
    return sorted(made, key=lambda it: it.findings[0].severity.rank), rest


def words_in_entry(finding: Finding) -> str:
    """What a finding says of its account; "" where it is no part of an entry."""
    part = f"entry.{finding.variant}"
    if not finding.variant or finding.server_words or part not in messages_of(finding.rule).templates:
        return ""
    return messages_of(finding.rule).render(part, finding.evidence)


def _in_runs(numbers: list[int]) -> str:
    """`1 to 3 and 5`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = [words for run in runs for words in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))
