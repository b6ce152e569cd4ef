"""Tables and summaries of requests. PURE: objects come in, lines go out; text from others is shown with escapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from provisioner.api_groups import OWN_GROUP, PAGE_ANNOTATION
from provisioner.escaping import visible

Record = Mapping[str, Any]
NONE = "-"


class Colour(StrEnum):
    """SGR codes (ECMA-48, 8.3.117)."""

    BAD = "31"
    GOOD = "32"
    WARNING = "33"
    STRONG = "1"


_SIZES = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Unit and its size, the smaller unit, until how many of the greater one both are told, and below how many seconds.
_UNITS = (
    ("s", 1, "", 0, 120),
    ("m", 60, "s", 10, 3 * 3600),
    ("h", 3600, "m", 8, 48 * 3600),
    ("d", 86400, "h", 8, 8 * 86400),
)
_SEVERITY = {
    "critical": Colour.BAD,
    "breaking": Colour.BAD,
    "unknown": Colour.WARNING,
    "dangerous": Colour.WARNING,
    "safe": Colour.GOOD,
}
_STATE = {
    "in_review": Colour.STRONG,
    "failed": Colour.BAD,
    "denied": Colour.BAD,
    "applied": Colour.GOOD,
    "approved": Colour.GOOD,
}
_PAINTED: Mapping[str, Mapping[str, Colour]] = {"STATE": _STATE, "WORST": _SEVERITY}


def painted(text: str, colour: Colour | None, *, is_coloured: bool) -> str:
    return f"\x1b[{colour.value}m{text}\x1b[0m" if colour and is_coloured else text


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, is_coloured: bool = False) -> str:
    """Columns as kubectl prints them: the last one is as long as it is. Words of states and severities have colours."""
    lines = [tuple(heads), *(tuple(visible(cell) or NONE for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    painted_columns = [column for column, head in enumerate(heads) if head in _PAINTED]
    made = []
    for number, line in enumerate(lines):
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        cells[-1] = cells[-1].rstrip()
        for column in painted_columns if number else []:
            colour = _PAINTED[heads[column]].get(line[column].replace(" ", "_"))
            cells[column] = painted(cells[column], colour, is_coloured=is_coloured)
        made.append("   ".join(cells).rstrip())
    return "".join(f"{line}\n" for line in made)


def requests_table(
    requests: Iterable[Record], *, now: datetime, standings: Mapping[str, str] | None = None, is_coloured: bool = False
) -> str:
    """A line for each; with `standings`, by name, also why it stands as it does."""
    rows: list[tuple[str, ...]] = [(*_request_cells(request), _request_age(request, now)) for request in requests]
    heads: tuple[str, ...] = ("REQUEST", "DEPLOYMENT", "STATE", "WORST", "REQUESTER", "AGE")
    if standings is not None:
        heads = (*heads, "WHY")
        rows = [(*row, standings.get(row[0], "")) for row in rows]
    return table(heads, rows, is_coloured=is_coloured) if rows else "No requests.\n"


def request_names(requests: Iterable[Record]) -> str:
    """As other commands of kubectl take them."""
    kind = f"bundledeploymentrequest.{OWN_GROUP}"
    return "".join(f"{kind}/{visible(str(request['metadata']['name']))}\n" for request in requests)


def _request_age(request: Record, now: datetime) -> str:
    made = str(request["metadata"].get("creationTimestamp") or "")
    return age_of(now - datetime.fromisoformat(made)) if made else ""


def age_of(passed: timedelta) -> str:
    """As kubectl prints ages: two units while the greater one is small."""
    seconds = max(int(passed.total_seconds()), 0)
    for unit, size, rest, both_below, below in _UNITS:
        if seconds < below:
            whole, over = divmod(seconds, size)
            part = over // _SIZES[rest] if rest else 0
            return f"{whole}{unit}{part}{rest}" if part and whole < both_below else f"{whole}{unit}"
    return f"{seconds // _SIZES['d']}d"


def _request_cells(request: Record) -> tuple[str, ...]:
    spec, status = request["spec"], request.get("status") or {}
    worst = str((status.get("reportSummary") or {}).get("worst") or "")
    state, who = str(status.get("state") or "preparing"), str((spec.get("requester") or {}).get("username") or "")
    return (request["metadata"]["name"], spec["bundleDeploymentRef"]["name"], state.replace("_", " "), worst, who)


def request_text(
    request: Record, reviews: Sequence[Record] | None, *, standing: str = "", upgrades: str = "", is_coloured: bool
) -> str:
    """What is decided: who asked, what it does in short, its digest, and what became of it so far.

    `standing` says why, and `upgrades` what catalogs offer, as the deployment does.
    """
    spec, status = request["spec"], request.get("status") or {}
    report, state = status.get("reportSummary") or {}, str(status.get("state") or "preparing")
    worst = str(report.get("worst") or "")
    requester = spec.get("requester") or {}
    facts = [
        ("Request", visible(str(request["metadata"]["name"]))),
        ("Deployment", visible(str(spec["bundleDeploymentRef"]["name"]))),
        ("Purpose", visible(str(spec.get("purpose") or "deploy"))),
        ("Requester", visible(f"{requester.get('username') or 'unknown'} (by {requester.get('via') or 'cluster'})")),
        ("State", painted(visible(state).replace("_", " "), _STATE.get(state), is_coloured=is_coloured)),
        *_optional_facts(request, standing, upgrades),
        ("Round", str(status.get("round") or NONE)),
        ("Digest", visible(str(status.get("subjectDigest") or NONE))),
        ("Worst", painted(visible(worst) or NONE, _SEVERITY.get(worst), is_coloured=is_coloured)),
    ]
    lines = [f"{f'{name}:':<13}{value}" for name, value in facts]
    lines += [
        "Changes:",
        *(f"  {visible(str(sentence))}" for sentence in report.get("headline") or ["the report is not ready"]),
    ]
    lines.append("Conditions:")
    for condition in status.get("conditions") or []:
        first_line = str(condition.get("message") or "").partition("\n")[0]
        words = f"{condition['type']}={condition['status']} {condition['reason']}"
        lines.append(f"  {visible(f'{words}: {first_line}' if first_line else words)}")
    if not status.get("conditions"):
        lines.append(f"  {NONE}")
    if reviews is None:
        lines += ["Reviews by kubectl: you may not list them"]
    else:
        here = [review for review in reviews if review["spec"]["requestRef"]["name"] == request["metadata"]["name"]]
        lines += ["Reviews by kubectl:", *(_review_line(review) for review in here)] if here else []
    return "\n".join(lines) + "\n"


def _optional_facts(request: Record, standing: str, upgrades: str) -> list[tuple[str, str]]:
    """Why it stands as it does, what is offered beside it, since when it is there, and where its page is; what is not
    known has no line."""
    about, status = request["metadata"], request.get("status") or {}
    is_open = status.get("state") in (None, "", "preparing", "in_review")
    chosen = [bundle for bundle in status.get("bundles") or () if bundle.get("whyCatalog")]
    catalogs = "; ".join(f"{bundle['catalog']}, {bundle['whyCatalog']}" for bundle in chosen)
    found = [
        ("Why", standing),
        ("Ticket", status.get("changeTicket")),
        ("Reason", status.get("changeReason")),
        ("Taken from", catalogs),
        ("Catalogs", upgrades),
        ("Created", about.get("creationTimestamp")),
        ("Expires", status.get("expiresAt") if is_open else ""),
        ("Apply at", status.get("applyAt") if is_open else ""),
        ("Page", (about.get("annotations") or {}).get(PAGE_ANNOTATION)),
    ]
    return [(name, visible(str(text))) for name, text in found if text]


def _review_line(review: Record) -> str:
    spec, counted = review["spec"], counted_of(review)
    what = f"{spec['decision']} by {spec['reviewer']['username']} in round {spec['round']}"
    if counted is None:
        return f"  {visible(what)}: not counted yet"
    is_counted = counted["status"] == "True"
    return f"  {visible(what)}: " + ("counted" if is_counted else visible(f"not counted, {counted['message']}"))


def counted_of(review: Record) -> Record | None:
    """The condition Counted, None while nobody has looked at the review."""
    found = (review.get("status") or {}).get("conditions") or []
    return next((condition for condition in found if condition["type"] == "Counted"), None)


def history_table(requests: Iterable[Record], *, is_coloured: bool = False) -> str:
    """The requests of one deployment, the latest first."""
    ordered = sorted(requests, key=_request_number, reverse=True)
    rows = [
        (
            request["metadata"]["name"],
            str(request["spec"].get("purpose") or ""),
            str((request.get("status") or {}).get("state") or "preparing").replace("_", " "),
            str((request["spec"].get("requester") or {}).get("username") or ""),
            _applied_revision(request),
            str(request["metadata"].get("creationTimestamp") or ""),
        )
        for request in ordered
    ]
    heads = ("REQUEST", "PURPOSE", "STATE", "REQUESTER", "APPLIED", "CREATED")
    return table(heads, rows, is_coloured=is_coloured) if rows else "No requests.\n"


def _request_number(request: Record) -> int:
    number = str(request["metadata"]["name"]).rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() else 0


def applied_revisions(requests: Iterable[Record]) -> list[int]:
    """The revisions that these requests made."""
    made = (_applied_revision(request).removeprefix("revision ") for request in requests)
    return sorted({int(text) for text in made if text.isascii() and text.isdigit()})


def _applied_revision(request: Record) -> str:
    """`revision 3`, of what was applied."""
    conditions = (request.get("status") or {}).get("conditions") or []
    applied = (
        condition for condition in conditions if condition["type"] == "Applied" and condition["status"] == "True"
    )
    return next((str(condition.get("message") or "") for condition in applied), "")
