"""What deployments keep of what their charts made up: given to the next rendering, recorded with a request, made anew
where somebody asks for it, hidden from everybody (security-rules.md S44).

A value counts from the request on in whose content it first stood. Which one counts next is what the running revision
has: so a request that was denied, or rolled back, changes nothing. One that was made anew never counts before it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from cryptography import x509
from django.db import IntegrityError, transaction
from django.db.models import Max, Q

from approvals.clock import database_now
from approvals.errors import KeyMissing, Undecipherable
from approvals.lifecycle import SUPERSEDABLE
from approvals.models import BundleDeployment, InventoryItem, KeptValue, Request, Revision
from provisioner.errors import TryLater
from provisioner.review.base.made_texts import SHORTEST, HiddenTexts, ShortText
from provisioner.sentences import some
from provisioner.values import MadePlace, MadeSort, MadeUp

HIDDEN = "(hidden: made up by the chart)"
HIDDEN_EARLIER = "(hidden: made up by the chart, an earlier value)"
_PUBLIC_SORTS = (MadeSort.NAME, MadeSort.TIME)
UNREADABLE = "(hidden: it may hold a value that the chart made up, which cannot be decrypted to look for it)"
# What may be asked for besides SECRET and SECRET/KEY: all but names of objects, which would be other objects.
ALL = "*"
NAMED = 20
MADE_MEANWHILE = (
    "another request kept values that the chart makes up while this one was rendered; it is rendered again with them"
)


def kept_rows(deployment: BundleDeployment) -> dict[str, KeptValue]:
    """By MadePlace.key what the next rendering is given: of each place the generation of the running revision's
    request, else of the newest request that has the place, else the newest; none of a rotation that never ran."""
    known_rows = list(deployment.kept_values.select_related("first_request").order_by("generation"))
    if any(row.origin == KeptValue.Origin.ROTATION for row in known_rows):
        has_run = _generations_in_force(deployment)
        known_rows = [
            row
            for row in known_rows
            if row.origin != KeptValue.Origin.ROTATION or (row.place_key, row.generation) in has_run
        ]
    if not known_rows:
        return {}
    named = {(record["key"], record["generation"]) for record in _counting_records(deployment)}
    rows: dict[str, KeptValue] = {}
    for row in known_rows:
        known = rows.get(row.place_key)
        if known is None or (known.place_key, known.generation) not in named:
            rows[row.place_key] = row
    return rows


def given_rows(deployment: BundleDeployment) -> dict[str, KeptValue]:
    """The same by the keys of all places that a value went to: a later version may have it in one of these alone."""
    rows = kept_rows(deployment)
    for record in _counting_records(deployment) if rows else ():
        # A denied rotation may be the newest record, and its values count for nothing.
        for copy in record["copies"] if record["key"] in rows else ():
            rows.setdefault(MadePlace(**copy).key, rows[record["key"]])
    return rows


def never_applied(deployment: BundleDeployment) -> set[str]:
    """The keys of values of `given_rows` that no revision had which came into force: what is live goes before them."""
    rows, has_run = given_rows(deployment), _generations_in_force(deployment)
    return {key for key, row in rows.items() if (row.place_key, row.generation) not in has_run}


def _generations_in_force(deployment: BundleDeployment) -> set[tuple[str, int]]:
    """The place_key and generation of every value that a revision had which came into force."""
    has_run = Q(revision__state__in=(Revision.State.ACTIVE, Revision.State.REPLACED))
    records = Request.objects.filter(has_run, deployment=deployment).values_list("made_values", flat=True)
    return {(one["key"], one["generation"]) for record in records for one in record.get("values", ())}


def _counting_records(deployment: BundleDeployment) -> list[dict[str, Any]]:
    if running := _running_records(deployment):
        return running
    newest = Request.objects.filter(deployment=deployment).exclude(made_values={}).order_by("-number").first()
    return newest.made_values["values"] if newest else []


def _running_records(deployment: BundleDeployment) -> list[dict[str, Any]]:
    running = Request.objects.filter(revision__pk=deployment.active_revision_id or 0).first()
    return running.made_values.get("values", []) if running else []


def why_not_rotatable(deployment: BundleDeployment, target: str) -> str:
    """Why nobody can have made anew what `target` names; "" where somebody can."""
    if deployment.deletion_requested_at:
        return f"{deployment.name} is being deleted"
    back = deployment.requests.filter(state__in=SUPERSEDABLE, purpose=Request.Purpose.ROLLBACK).first()
    if back:
        return f"request {back.number} is an open rollback; decide or withdraw it first, and ask again then"
    if deployment.active_revision_id is None:
        return f"no revision of {deployment.name} is in force, so no value that its chart made up is in use"
    if rotated_keys(deployment, target):
        return ""
    known = rotatable_names(deployment)
    if not rotated_keys(deployment, ALL):
        return f"{deployment.name} keeps no values that its chart made up"
    there = some(known, NAMED) if known else "none of a Secret"
    return (
        f"{deployment.name} keeps no value under the name {target[:100]!r}; expected SECRET, SECRET/KEY or * "
        f"for all of them. There are: {there}"
    )


def rotatable_names(deployment: BundleDeployment) -> list[str]:
    """The Secrets and their keys by which values of the running revision can be named."""
    return sorted({name for record in _running_records(deployment) for name in _names(record)})


def rotated_keys(deployment: BundleDeployment, target: str) -> set[str]:
    """The keys of all places that those values of the running revision went to which `target` names."""
    keys = set()
    for record in _running_records(deployment):
        if target in _names(record) or (target == ALL and not _names_objects(record)):
            keys |= {record["key"], *(MadePlace(**place).key for place in (record["place"], *record["copies"]))}
    return keys


def _names_objects(record: Mapping[str, Any]) -> bool:
    """Whether a value is in the name of an object, whatever else has it: a new one would make another object."""
    places = (record["place"], *record["copies"])
    is_in_one = any(not place["name"] and place["path"].endswith("/metadata/name") for place in places)
    return is_in_one or record["sort"] == MadeSort.NAME


def _names(record: Mapping[str, Any]) -> set[str]:
    """By what people name a value: the Secrets that it stands in, and each with its key."""
    names: set[str] = set()
    if _names_objects(record):
        return names
    for place in (record["place"], *record["copies"]):
        _, *steps = place["path"].split("/")
        if place["kind"] == "Secret" and place["name"] and steps[0] in ("data", "stringData"):
            names |= {place["name"], f"{place['name']}/{steps[1]}"}
    return names


def keep(request: Request, made_up: MadeUp) -> dict[str, Any]:
    """Keep what is new of it, was made anew, or was found in the cluster, and return what the request says of it.

    Raises TryLater where another value has come to count for a place since the rendering: the first one stays.
    """
    deployment = request.deployment
    given, unused = given_rows(deployment), never_applied(deployment)
    newest = dict(deployment.kept_values.values_list("place_key").annotate(Max("generation")))
    rows, values = [], []
    taken = {made.place.key for made in made_up.values if made.is_rotated}
    for made in made_up.values:
        key, place = made.place.key, asdict(made.place)
        origin = KeptValue.Origin.CHART if made.is_new else KeptValue.Origin.CLUSTER
        row = given.get(key)
        if made.is_rotated:
            if row is None:
                raise TryLater(MADE_MEANWHILE)
            if row.place_key not in taken:  # else one value has become two, and only one of them follows it
                key, place = row.place_key, row.place
                taken.add(key)
            row, origin = None, KeptValue.Origin.ROTATION
        if row is not None and row.value != made.value and key in unused and not made.is_new:
            row = None  # the live one was found in the cluster
        if row is not None and (made.is_new or row.value != made.value):
            raise TryLater(MADE_MEANWHILE)
        if row is None:
            row = KeptValue(
                deployment=deployment,
                place=place,
                place_key=key,
                sort=made.sort,
                generation=newest.get(key, 0) + 1,
                value=made.value,
                origin=origin,
                first_request=request,
                made_at=database_now(),
                expires_at=_end_of(made.value) if made.sort in (MadeSort.CERTIFICATE, MadeSort.AUTHORITY) else None,
            )
            rows.append(row)
        values.append(
            {
                "key": row.place_key,
                "place": asdict(made.place),
                "sort": str(made.sort),
                "generation": row.generation,
                "isNew": made.is_new,
                "isRotated": made.is_rotated,
                "copies": [asdict(copy) for copy in made.copies],
            }
        )
    try:
        with transaction.atomic():
            KeptValue.objects.bulk_create(rows)
    except IntegrityError as exc:
        raise TryLater(MADE_MEANWHILE) from exc
    checksums = [{"place": asdict(one.place), "isKnown": one.is_known} for one in made_up.checksums]
    return {"values": values, "checksums": checksums} if values or checksums else {}


def as_kept(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says of values that a revision had: none of them is made now."""
    values = [{**one, "isNew": False, "isRotated": False} for one in record.get("values", ())]
    return {**record, "values": values} if record else {}


def hidden_texts(deployment_id: int, current: Iterable[Mapping[str, Any]] = ()) -> HiddenTexts:
    """What hides all values that the deployment has kept; those of no record of `current` as earlier ones, if there is
    any. Names and times that were made up are public. Raises as decrypting does."""
    records = {(record["key"], record["generation"]): record for record in current}
    words, leaves = {}, []
    for row in (
        KeptValue.objects.filter(deployment=deployment_id).exclude(sort__in=_PUBLIC_SORTS).order_by("generation")
    ):
        record = records.get((row.place_key, row.generation))
        is_current = not records or record is not None
        # Two places may have one value, one of them an earlier one.
        if is_current or row.value not in words:
            words[row.value] = HIDDEN if is_current else HIDDEN_EARLIER
        if record and len(row.value) < SHORTEST:
            for place in (record["place"], *record["copies"]):
                steps = place["path"].removeprefix("/").split("/")
                path = tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)
                leaves.append(ShortText(place["kind"], place["namespace"], place["name"], path, row.value, HIDDEN))
    return HiddenTexts(words, leaves)


def without_values(deployment_id: int, words: Any) -> Any:
    """Words of the API server, of Helm or of ours, with no value in them that the deployment keeps."""
    try:
        hidden = hidden_texts(deployment_id)
        return hidden.of(words) if hidden else words
    except (KeyMissing, Undecipherable):
        return _unreadable(words)


def without_short_values(request: Request, item: InventoryItem, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fields of a drift from this request, without values that are too short to be looked for in all words."""
    try:
        leaves = hidden_texts(request.deployment_id, request.made_values.get("values", ())).leaves
    except (KeyMissing, Undecipherable):
        return fields  # without_values left nothing of them
    own = [leaf for leaf in leaves if (leaf.kind, leaf.namespace, leaf.name) == (item.kind, item.namespace, item.name)]
    known = {".".join(leaf.path) for leaf in own} | {leaf.text for leaf in own}
    hidden = {"expected": HIDDEN, "found": HIDDEN}
    return [{**field, **hidden} if known & {field["path"], field["expected"]} else field for field in fields]


def words_of_problem(request: Request, problem: str, said: list[dict[str, Any]]) -> dict[str, Any]:
    """The columns `problem` and `server_words` of a request, without such values."""
    problem, *words = without_values(request.deployment_id, [problem, *(one["words"] for one in said)])
    return {
        "problem": problem, "server_words": [{**one, "words": shown} for one, shown in zip(said, words, strict=True)]
    }  # fmt: skip


def _unreadable(words: Any) -> Any:
    if isinstance(words, Mapping):
        return {key: _unreadable(inner) for key, inner in words.items()}
    if isinstance(words, list | tuple):
        return type(words)(map(_unreadable, words))
    return UNREADABLE if isinstance(words, str) and words else words


def _end_of(value: str) -> datetime | None:
    """When the certificate ends; None where the block is another one, such as a key."""
    try:
        return x509.load_pem_x509_certificate(value.encode()).not_valid_after_utc
    except ValueError:
        return None
