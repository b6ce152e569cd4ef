"""Amounts by the names that quotas give them, read and written as people do."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from provisioner.builtin import quantity
from provisioner.review.base.facts import mapping

Amounts = Mapping[str, Decimal]


def amounts(value: object) -> Amounts:
    """Of a map of quantities those that can be read."""
    found = {str(name): quantity(raw) for name, raw in mapping(value).items()}
    return {name: amount for name, amount in found.items() if amount is not None}


def texts(found: Amounts) -> dict[str, str]:
    return {name: in_text(amount) for name, amount in sorted(found.items())}


def in_text(amount: Decimal | None) -> str:
    """A number as people write it: bytes of memory in the units of Kubernetes."""
    if amount is None:
        return "(none)"
    for unit, size in (("Gi", 2**30), ("Mi", 2**20)):
        if amount and amount >= size and amount % size == 0:
            return f"{amount / size:f}{unit}"
    plain = f"{amount:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
