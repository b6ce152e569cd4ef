"""Label selectors, as the API server reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.review.facts import items, mapping, maps


def selects(selector: object, labels: Mapping[str, Any]) -> bool:
    """Whether labels fit a LabelSelector; an empty one selects everything."""
    exact = mapping(mapping(selector).get("matchLabels"))
    if any(labels.get(key) != value for key, value in exact.items()):
        return False
    return all(_fits(term, labels) for term in maps(mapping(selector).get("matchExpressions")))


def _fits(term: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """A term with an operator that nobody knows selects nothing."""
    value, values = labels.get(str(term.get("key"))), items(term.get("values"))
    match term.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
