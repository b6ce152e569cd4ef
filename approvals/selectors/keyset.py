"""Pages of lists by keys: a page begins after a row, so that its address stays true while rows are added.

The keys of a page are read first, from an index alone, and the rows of these keys then: skipping and filtering never
reads a wide row. A cursor holds nothing but the key of a row that was shown.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import BooleanField, F, Field, Func, Model, Q, QuerySet, Value
from django.db.models.constants import LOOKUP_SEP

# Nobody counts further: what a list says of more is "more than".
MOST_COUNTED = 10_000
MOST_NAMED = 500
MAX_CURSOR = 600
AFTER, BEFORE = "a", "b"


class BadCursor(ValueError):
    """The text is no cursor of this list."""


@dataclass(frozen=True, slots=True)
class ListOrder:
    """What a list is sorted by: fields or annotations that are never null, the last of which is unique, all in one
    direction."""

    fields: tuple[str, ...]
    is_descending: bool = False

    @classmethod
    def of(cls, rows: QuerySet[Any]) -> ListOrder:
        """The order that the rows have already; by their keys beside it, where that is not unique."""
        names = [str(name) for name in rows.query.order_by or rows.model._meta.ordering]
        is_descending = bool(names) and names[0].startswith("-")
        if any(name.startswith("-") is not is_descending for name in names):
            raise ValueError(f"{names}: the fields of one list are sorted in one direction")
        fields = tuple(name.removeprefix("-") for name in names)
        return cls(fields if fields[-1:] == ("pk",) else (*fields, "pk"), is_descending)

    def names(self, *, is_reversed: bool = False) -> list[str]:
        sign = "-" if self.is_descending is not is_reversed else ""
        return [f"{sign}{name}" for name in self.fields]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins (AFTER) or ends (BEFORE): beside the row with these values of the order's fields."""

    side: str
    values: tuple[Any, ...]

    def text(self) -> str:
        plain = [value.isoformat() if isinstance(value, datetime) else value for value in self.values]
        words = json.dumps([self.side, *plain], separators=(",", ":"), default=str)
        return base64.urlsafe_b64encode(words.encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, order: ListOrder, rows: QuerySet[Any]) -> Cursor:
        """Raises BadCursor for what no page of this list has given out."""
        try:
            if len(text) > MAX_CURSOR:
                raise ValueError(len(text))
            side, *values = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
            fields = [_ordering_field(rows, name) for name in order.fields]
            told = tuple(_parse_value(field, value) for field, value in zip(fields, values, strict=True))
        except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error, ValidationError) as exc:
            raise BadCursor(text[:MAX_CURSOR]) from exc
        if side not in (AFTER, BEFORE):
            raise BadCursor(text[:MAX_CURSOR])
        return cls(side, told)


@dataclass(frozen=True, slots=True)
class Window:
    """One page: its keys in order, and the cursors of the pages beside it, "" where there are none."""

    keys: tuple[Any, ...]
    previous: str
    next: str


def window(rows: QuerySet[Any], order: ListOrder, *, size: int, cursor: Cursor | None = None, skip: int = 0) -> Window:
    """The page at the cursor, the first without one; `skip` rows of the first are left out, for numbered pages."""
    if cursor is None or cursor.side == AFTER:
        beyond = rows.filter(beside(cursor, order)) if cursor else rows
        found = _ordered_values(beyond, order.fields, order.names())[skip : skip + size + 1]
        page = list(found)
        return _window(page[:size], has_previous=cursor is not None or skip > 0, has_next=len(page) > size)
    found = _ordered_values(rows.filter(beside(cursor, order)), order.fields, order.names(is_reversed=True))
    page = list(found[: size + 1])
    if len(page) <= size:  # the first page, which is never shorter than there are rows
        return window(rows, order, size=size)
    return _window(page[:size][::-1], has_previous=True, has_next=True)


def beside(cursor: Cursor, order: ListOrder) -> Q:
    """The rows on the cursor's side, as a comparison of rows that an index answers: (a, b) < (1, 2)."""
    is_less = order.is_descending is (cursor.side == AFTER)
    # An index that begins with the first field serves, also where the others are another table's.
    bound = {f"{order.fields[0]}__{'lte' if is_less else 'gte'}": cursor.values[0]}
    return Q(**bound) & Q(_Beside(order.fields, cursor.values, "<" if is_less else ">"))


def in_order(rows: QuerySet[Any], keys: Sequence[Any]) -> list[Any]:
    """The rows of these keys, as they were listed; one that is gone since is left out."""
    known = {row.pk: row for row in rows.filter(pk__in=keys).order_by()}
    return [known[key] for key in keys if key in known]


def by_keys_if_few(rows: QuerySet[Any]) -> QuerySet[Any]:
    """The same rows, named by their keys where there are at most MOST_NAMED, else as they are.

    For rows that are found by what stands beside them, or by several fields at once. PostgreSQL often thinks that there
    are many, and walks along the order of the list until it has met enough of them, which are never enough. Without an
    order it begins where it finds them.
    """
    keys = list(rows.order_by().values_list("pk", flat=True)[: MOST_NAMED + 1])
    return rows if len(keys) > MOST_NAMED else rows.filter(pk__in=keys)


def counted(rows: QuerySet[Any]) -> int | None:
    """How many rows there are; None for more than MOST_COUNTED."""
    count = rows.order_by().values("pk")[: MOST_COUNTED + 1].count()
    return count if count <= MOST_COUNTED else None


def field_of(model: type[Model], name: str) -> Field[Any, Any]:
    *path, last = name.split(LOOKUP_SEP)
    for step in path:
        related = model._meta.get_field(step).related_model
        assert isinstance(related, type)
        model = related
    if last == "pk":
        return model._meta.pk
    found = model._meta.get_field(last)
    if not isinstance(found, Field):
        raise FieldDoesNotExist(name)
    return found


def _ordering_field(rows: QuerySet[Any], name: str) -> Field[Any, Any]:
    """The column, or what the rows were annotated with under this name."""
    annotated = rows.query.annotations.get(name)
    return annotated.output_field if annotated is not None else field_of(rows.model, name)


class _Row(Func):
    template = "(%(expressions)s)"
    output_field = BooleanField()  # of no use but to be there: a row has no type


class _Beside(Func):
    """(fields) < (values), which PostgreSQL and SQLite compare from left to right."""

    template = "%(expressions)s"
    output_field = BooleanField()
    conditional = True

    def __init__(self, fields: Sequence[str], values: Sequence[Any], sign: str, **more: Any) -> None:
        super().__init__(_Row(*map(F, fields)), _Row(*map(Value, values)), arg_joiner=f" {sign} ", **more)


def _parse_value(field: Field[Any, Any], value: object) -> Any:
    if not isinstance(value, str | int) or (isinstance(value, str) and "\0" in value):
        raise BadCursor(str(value))
    told = field.to_python(value)
    field.run_validators(told) if isinstance(told, int) and not isinstance(told, bool) else None
    if told is None:
        raise BadCursor(str(value))
    return told


def _ordered_values(rows: QuerySet[Any], fields: tuple[str, ...], order: Sequence[str]) -> QuerySet[Any, Any]:
    return rows.order_by(*order).values_list(*fields)


def _window(page: Sequence[tuple[Any, ...]], *, has_previous: bool, has_next: bool) -> Window:
    keys = tuple(row[-1] for row in page)
    previous = Cursor(BEFORE, tuple(page[0])).text() if page and has_previous else ""
    following = Cursor(AFTER, tuple(page[-1])).text() if page and has_next else ""
    return Window(keys, previous, following)
