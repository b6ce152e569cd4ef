"""The columns of the inbox, one class each: what it reads, its heading and cell, what it sorts by, its field in REST.

A new column is a class here and its place in COLUMNS; pages and REST read everything from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from approvals.models import Report, Request, Review
from approvals.selectors.keyset import ListOrder


@dataclass(frozen=True, slots=True)
class Sort:
    """One way to sort the list by a column, as a filter of the page offers it."""

    words: str
    order: ListOrder


class Column:
    """`cell` is the template of a cell, which knows `item` (a Request with what `annotate` adds), `row` (a
    ListedRequest), `how` (its RequestStatus) and `needed` (approvals). `css` are the classes of the cell, `number` for
    one of numbers.

    `sorts` are by their name in the address of the page. What a list is sorted by tells its rows from others, so that
    it must not be hidden from anybody who reads the list. `rest_name` is the field of REST, "" for none, with what
    `rest_value` says of a row and the `rest_schema` of that.
    """

    heading: ClassVar[str]
    cell: ClassVar[str]
    css: ClassVar[str] = ""
    sorts: ClassVar[Mapping[str, Sort]] = {}
    rest_name: ClassVar[str] = ""
    rest_schema: ClassVar[Mapping[str, Any]] = {"type": "string"}

    @property
    def is_number(self) -> bool:
        return "number" in self.css.split()

    def annotate(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        """Return the rows with what the column reads beside the fields of a request."""
        return rows

    def rest_value(self, item: Any) -> Any:
        return getattr(item, self.rest_name)


class WorstColumn(Column):
    """The worst severity of the present round's report, None where there is none yet."""

    heading = "Worst"
    cell = """{% if item.worst %}{{ item.worst|severity }}{% else %}\
<span class="quiet">{% if how.is_told %}not known{% else %}not known yet{% endif %}</span>{% endif %}"""
    sorts = {"worst": Sort("Worst first", ListOrder(("weight", "created_at", "pk"), is_descending=True))}
    rest_name = "worst"

    def annotate(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        return rows.annotate(worst=Subquery(present_reports().values("worst")[:1]))

    def rest_value(self, item: Any) -> str:
        return str(item.worst or "")


class DeploymentColumn(Column):
    heading = "Deployment"
    cell = """<a class="mono" id="r-{{ item.uid }}" href="{% url 'request' item.uid %}">{{ item.deployment.name }}</a>\
&nbsp;<span class="quiet">#{{ item.number }}</span>"""
    sorts = {"deployment": Sort("By deployment", ListOrder(("deployment__name", "pk")))}


class ChangeColumn(Column):
    heading = "Change"
    cell = """<span title="{{ item|source_change }}">{% include "requests/_versions.html" %}</span>\
{% if item.change_ticket %}<br><span class="quiet" title="{{ item.change_reason }}"><span class="sr">for ticket </span>\
{{ item.change_ticket|truncatechars:40 }}</span>{% endif %}"""
    css = "mono change"


class EffectColumn(Column):
    """What it does, by the headline of the present round's report, and why it stands still where it does."""

    heading = "What it does"
    cell = """{% if how.is_told and how.cause %}\
<span class="brief{% if how.remedy %} brief-one{% endif %}">{{ how.cause|sentence }}</span>\
{% if how.remedy %}<span class="brief brief-one quiet">Next: {{ how.remedy|sentence }}</span>{% endif %}\
{% elif item.headline %}<span class="brief">{{ item.headline.0|sentence }}</span>\
{% else %}<span class="brief quiet">{{ how.cause|sentence }}</span>{% endif %}"""
    css = "words"
    rest_name = "headline"
    rest_schema = {"type": "array", "items": {"type": "string"}}

    def annotate(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        return rows.annotate(headline=Subquery(present_reports().values("headline")[:1]))

    def rest_value(self, item: Any) -> list[str]:
        return list(item.headline or ())


class ClusterColumn(Column):
    heading = "Cluster"
    cell = "{{ item.deployment.cluster.name }}"
    css = "mono"


class StateColumn(Column):
    heading = "State"
    cell = """<span class="label label-{{ how.tone }}">{{ how.label }}</span>\
{% include "workspace/_next.html" with why=row.why %}"""
    css = "standing"


class CreatedColumn(Column):
    heading = "Created"
    cell = "{{ item.created_at|ago }}"
    css = "number"
    sorts = {
        "newest": Sort("Newest first", ListOrder(("created_at", "pk"), is_descending=True)),
        "oldest": Sort("Oldest first", ListOrder(("created_at", "pk"))),
    }


class ApprovalsColumn(Column):
    heading = "Approvals"
    cell = (
        "{{ item.approvals }} of {{ needed }}{% with left=item.rules_left|length %}"
        "{% if left %} and {{ left }} rule{{ left|pluralize }}{% endif %}{% endwith %}"
    )
    css = "number"

    def annotate(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        given = Review.objects.filter(
            request=OuterRef("pk"), round=OuterRef("round"), decision="Approve", policy=None, replaced_by=None
        )
        counted = given.order_by().values("request").annotate(count=Count("pk")).values("count")
        return rows.annotate(approvals=Coalesce(Subquery(counted), 0))


COLUMNS: tuple[Column, ...] = (
    WorstColumn(),
    DeploymentColumn(),
    ChangeColumn(),
    EffectColumn(),
    ClusterColumn(),
    StateColumn(),
    CreatedColumn(),
    ApprovalsColumn(),
)
REST_COLUMNS = {column.rest_name: column for column in COLUMNS if column.rest_name}
SORTS = {name: sort for column in COLUMNS for name, sort in column.sorts.items()}


def present_reports() -> QuerySet[Report]:
    """The report of the present round, for a subquery about requests."""
    return Report.objects.filter(request=OuterRef("pk"), round=OuterRef("round"))


def with_columns(rows: QuerySet[Request], columns: Iterable[Column]) -> QuerySet[Request]:
    for column in columns:
        rows = column.annotate(rows)
    return rows
