"""Label selectors, as the API server reads them: of webhooks, disruption budgets, aggregated roles and catalogs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MAX_TERMS = 50
MAX_WORDS = 1_000
_PARTS = ("matchLabels", "matchExpressions")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NAME = r"[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?"
_PREFIX = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_LABEL_KEY = re.compile(rf"(?:{_PREFIX}/)?{_NAME}", re.ASCII)
_LABEL_VALUE = re.compile(rf"(?:{_NAME})?", re.ASCII)
_KEY = r"(?P<key>[A-Za-z0-9](?:[-\w./]*[A-Za-z0-9])?)"
_TERM = re.compile(
    rf"\s*(?:!\s*(?P<absent>[-\w./]+)|{_KEY}\s*(?:(?P<sign>==?|!=)\s*(?P<value>[-\w.]*)"
    r"|(?:(?<=\s)(?P<word>in|notin)\s*\((?P<values>[-\w.,\s]*)\))?))\s*(?:,|\Z)"
)


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


def problem_of_selector(selector: object) -> str:
    """Why the API server would not take a LabelSelector, in words; "" where it would."""
    return next(_problems(selector), "")


def _problems(selector: object) -> Iterator[str]:
    if not isinstance(selector, Mapping):
        yield f"is {type(selector).__name__}; expected matchLabels, matchExpressions or both"
        return
    if unknown := sorted(map(str, selector.keys() - {*_PARTS})):
        yield f"has {unknown[0][:80]!r}; it takes {' and '.join(_PARTS)}"
    exact, terms = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    if not isinstance(exact, Mapping) or len(exact) > MAX_TERMS:
        yield f"matchLabels: expected a mapping of at most {MAX_TERMS} labels"
        return
    if not isinstance(terms, list | tuple) or len(terms) > MAX_TERMS:
        yield f"matchExpressions: expected a list of at most {MAX_TERMS} terms"
        return
    for key, value in exact.items():
        yield from _label_problems("matchLabels", key, [value])
    for number, term in enumerate(terms):
        yield from _term_problems(f"matchExpressions[{number}]", term)


def _term_problems(where: str, term: object) -> Iterator[str]:
    if not isinstance(term, Mapping) or term.keys() - {"key", "operator", "values"}:
        yield f"{where}: expected key, operator and values"
        return
    operator, values = term.get("operator"), term.get("values") or []
    if operator not in _OPERATORS:
        yield f"{where}.operator is {str(operator)[:40]!r}; expected one of {', '.join(_OPERATORS)}"
    elif not isinstance(values, list | tuple) or len(values) > MAX_TERMS:
        yield f"{where}.values: expected a list of at most {MAX_TERMS}"
    elif bool(values) is (operator not in ("In", "NotIn")):
        yield f"{where}.values: {operator} takes {'none' if values else 'at least one'}"
    else:
        yield from _label_problems(where, term.get("key"), values)


def _label_problems(where: str, key: object, values: Iterable[object]) -> Iterator[str]:
    if not isinstance(key, str) or not _LABEL_KEY.fullmatch(key):
        yield f"{where}: {str(key)[:80]!r} is no key of a label"
    for value in values:
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
            yield f"{where}: {str(value)[:80]!r} is no value of a label"


def parse_terms(text: str) -> dict[str, Any]:
    """The LabelSelector that a text such as `app=web,tier in (a, b),!old` stands for. Raises ValueError."""
    terms, position = [], 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None or term.end() == position:
            raise ValueError("expected terms such as app=web, app!=web, app in (a, b), app, !app")
        position = term.end()
        if term["absent"]:
            terms.append({"key": term["absent"], "operator": "DoesNotExist"})
        elif term["word"]:
            values = [value.strip() for value in term["values"].split(",")]
            terms.append({"key": term["key"], "operator": {"in": "In"}.get(term["word"], "NotIn"), "values": values})
        elif term["sign"]:
            operator = "NotIn" if term["sign"] == "!=" else "In"
            terms.append({"key": term["key"], "operator": operator, "values": [term["value"]]})
        else:
            terms.append({"key": term["key"], "operator": "Exists"})
    return {"matchExpressions": terms}


def selector_words(selector: object) -> str:
    """A LabelSelector in the text that `parse_terms` reads; "" for one that selects everything.

    One that cannot be read is told as it is written.
    """
    if problem_of_selector(selector):
        return json.dumps(selector, sort_keys=True, default=str)[:MAX_WORDS]
    found: Mapping[str, Any] = selector if isinstance(selector, Mapping) else {}
    words = [f"{key}={value}" for key, value in sorted((found.get("matchLabels") or {}).items())]
    for term in found.get("matchExpressions") or ():
        key, values = str(term.get("key")), list(map(str, term.get("values") or ()))
        match term.get("operator"):
            case "In":
                words.append(f"{key}={values[0]}" if len(values) == 1 else f"{key} in ({', '.join(values)})")
            case "NotIn":
                words.append(f"{key}!={values[0]}" if len(values) == 1 else f"{key} notin ({', '.join(values)})")
            case "Exists":
                words.append(key)
            case _:
                words.append(f"!{key}")
    return ", ".join(words)
