"""The pictures of a report for its page that needs nothing else: nested lists, folded by the browser alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from provisioner.review.base.marks import Mark
from provisioner.review.crds.schema_tree import SchemaPicture, crds_of, picture_of
from provisioner.review.rights.account_graph import AccountGraph, account_graph, accounts_of
from provisioner.values import Action, ObjectRef, Report, Section

MAX_ACCOUNTS = 20
MAX_CRDS = 40


@dataclass(frozen=True, slots=True)
class Pictures:
    """What is drawn of one section: accounts whose rights change and CRDs (by name) that do, the worst first.

    `left_out` is how many more there are of the one or the other.
    """

    accounts: tuple[AccountGraph, ...] = ()
    schemas: tuple[tuple[str, SchemaPicture], ...] = ()
    left_out: int = 0


def pictures_of(section: Section, report: Report, hidden: Collection[ObjectRef]) -> Pictures:
    """What can be drawn of one section; of `hidden` objects nothing is."""
    if section is Section.PERMISSIONS:
        return _accounts(report, hidden)
    if section is Section.CRDS:
        return _schemas(report, hidden)
    return Pictures()


def _accounts(report: Report, hidden: Collection[ObjectRef]) -> Pictures:
    """The ways of each account whose rights change, the worst first."""
    seen = {ref.identity for ref in hidden}
    graphs = (account_graph(report, subject, hidden=seen) for subject in accounts_of(report))
    changed = [one for one in graphs if one.findings or any(mark is not Mark.SAME for mark in one.counts)]
    return Pictures(accounts=tuple(changed[:MAX_ACCOUNTS]), left_out=max(0, len(changed) - MAX_ACCOUNTS))


def _schemas(report: Report, hidden: Collection[ObjectRef]) -> Pictures:
    """The changed branches of each CRD that is updated, the worst first."""
    shown = [one for one in crds_of(report) if one.action is Action.UPDATE and one.ref not in hidden]
    drawn = tuple((one.ref.name, picture_of(report, one)) for one in shown[:MAX_CRDS])
    return Pictures(schemas=drawn, left_out=max(0, len(shown) - MAX_CRDS))
