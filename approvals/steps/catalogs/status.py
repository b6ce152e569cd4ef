"""What the cluster shows of a catalog. PURE: a row comes in, its status goes out."""

from __future__ import annotations

from typing import Any

from approvals.models import Catalog, CatalogEdition
from approvals.steps.mirroring.conditions import Condition, camel, instant
from provisioner.sentences import and_more, number

SHOWN_PROBLEMS = 5


def catalog_status(catalog: Catalog) -> dict[str, Any]:
    edition = catalog.edition
    progressing = Condition("Progressing", False, "NotReading", "", catalog.tried_at or catalog.seen_at)
    if catalog.reading_since:
        words = "its source is being read"
        progressing = Condition("Progressing", True, "Reading", words, catalog.reading_since)
    conditions = [
        _ready_condition(catalog, edition),
        _source_condition(catalog),
        _sound_condition(catalog, edition),
        progressing,
    ]
    shown = {condition["type"]: condition for condition in catalog.status.get("conditions") or ()}
    records = [condition.record(generation=catalog.generation) for condition in conditions]
    for record in records:
        before = shown.get(record["type"])
        if before and before["status"] == record["status"]:
            record["lastTransitionTime"] = before["lastTransitionTime"]
    status: dict[str, Any] = {"observedGeneration": catalog.generation, "conditions": records}
    if catalog.looked_at:
        status["lookedAt"] = instant(catalog.looked_at)
    if edition is None or edition.read_at is None:
        return status
    return status | {
        "digest": edition.digest,
        "readAt": instant(edition.read_at),
        "packages": edition.package_count,
        "channels": edition.channel_count,
        "bundles": edition.bundle_count,
        "problems": edition.problem_count,
    }


def _ready_condition(catalog: Catalog, edition: CatalogEdition | None) -> Condition:
    if edition is not None and edition.read_at is not None:
        counts = f"{number(edition.package_count, 'package')} with {number(edition.bundle_count, 'bundle')}"
        return Condition("Ready", True, "Read", f"{counts}, read from {edition.digest}", edition.read_at)
    if catalog.problem:
        since = catalog.problem_since or catalog.seen_at
        return Condition("Ready", False, camel(catalog.problem_code), f"not read yet: {catalog.problem}", since)
    if catalog.reading_since:
        words = "it is being read for the first time"
        return Condition("Ready", False, "Reading", words, catalog.seen_at)
    words = "it is next in line, or others are read before it: catalogs are read in turn"
    return Condition("Ready", False, "NotReadYet", words, catalog.seen_at)


def _source_condition(catalog: Catalog) -> Condition:
    if catalog.problem:
        since = catalog.problem_since or catalog.seen_at
        stays = "; what was read before is still offered" if catalog.edition_id else ""
        return Condition("SourcesAvailable", False, camel(catalog.problem_code), f"{catalog.problem}{stays}", since)
    if catalog.looked_at is None:
        return Condition("SourcesAvailable", False, "NotCheckedYet", "", catalog.seen_at, is_unknown=True)
    return Condition("SourcesAvailable", True, "Available", "", catalog.looked_at)


def _sound_condition(catalog: Catalog, edition: CatalogEdition | None) -> Condition:
    if edition is None or edition.read_at is None:
        return Condition("Sound", False, "NotReadYet", "", catalog.seen_at, is_unknown=True)
    if not edition.problem_count:
        return Condition("Sound", True, "NoProblems", "", edition.read_at)
    lines = [f"{where}: {words}" for where, words in edition.problems[:SHOWN_PROBLEMS]]
    left = edition.problem_count - len(lines)
    said = "\n".join([*lines, *([and_more(left)] if left > 0 else [])])
    words = f"{number(edition.problem_count, 'problem')}; what they are about is left out or doubtful:\n{said}"
    return Condition("Sound", False, "Problems", words, edition.read_at)
