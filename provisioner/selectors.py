"""Label selectors, as the API server reads them: of webhooks, disruption budgets and aggregated roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def selects(selector: object, labels: Mapping[str, Any]) -> bool:
    """Whether labels fit a LabelSelector; an empty one selects everything.

    A term that cannot be read, or with an operator that nobody knows, selects nothing.
    """
    if not isinstance(selector, Mapping):
        return True
    exact, terms = selector.get("matchLabels"), selector.get("matchExpressions")
    if isinstance(exact, Mapping) and any(labels.get(key) != value for key, value in exact.items()):
        return False
    return all(_fits(term, labels) for term in terms) if isinstance(terms, list | tuple) else True


def _fits(term: object, labels: Mapping[str, Any]) -> bool:
    if not isinstance(term, Mapping):
        return False
    value, stated = labels.get(str(term.get("key"))), term.get("values")
    values = stated if isinstance(stated, list | tuple) else []
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
