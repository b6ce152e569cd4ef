"""What all checks about Pratique itself find together."""

from __future__ import annotations

from provisioner.review.base.facts import Facts, StateFacts
from provisioner.review.checks.own import accounts, power, pratique_objects
from provisioner.values import Finding

OWN = (pratique_objects.CHECK, power.CHECK, accounts.CHECK)


def find_changes(facts: Facts) -> list[Finding]:
    return [finding for check in OWN for finding in check.changes(facts)]


def find_standing(state: StateFacts) -> list[Finding]:
    return [finding for check in OWN for finding in check.standing(state)]
