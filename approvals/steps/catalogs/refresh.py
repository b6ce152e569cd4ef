"""Read a catalog again if its source has other content, and show in the cluster how it stands.

Nobody asks for a look, so a source with credentials is read as the person who wrote it (S08). The rows are the queue:
a catalog that is due waits; one that is being read says since when (`reading_since`), under the claim of its task,
which lapses if its worker dies. The longest due comes first, and nobody ever has all places (S40).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DataError, IntegrityError
from django.db.models import Q

from approvals import access, instruments, wake
from approvals.access import Asker
from approvals.access.port import connect
from approvals.bundle_spec import parse_catalog_source
from approvals.catalogs import followed_packages
from approvals.catalogs.editions import ReadCatalog, is_read_as_now, store_edition
from approvals.catalogs.schedule import (
    author_names,
    authors_by_part,
    has_same_source,
    postpone_read,
    record_problem,
    record_read_end,
    record_read_start,
    record_reader_proof,
    record_shown_status,
    record_success,
)
from approvals.clock import database_now
from approvals.errors import Crashed, LostClaim
from approvals.ledger import claims, references
from approvals.models import Catalog, TaskClaim
from approvals.policy import Lapse
from approvals.steps.catalogs.status import catalog_status
from approvals.steps.mirroring.mirror import GROUP_VERSION, apply_status
from approvals.steps.sources import egress, polling_egress, reader_as, source_of
from approvals.working import Recurring, WorkStep, in_turn
from provisioner.catalogs.fetch import FetchLimits, fetch_catalog, fetch_tags
from provisioner.catalogs.file_based import read_catalog
from provisioner.catalogs.helm_index import read_helm_index
from provisioner.errors import (
    Forbidden,
    InvalidManifest,
    PratiqueError,
    SourceTooSlow,
    TryLater,
    Unreachable,
    WorkerDied,
)
from provisioner.source import HttpSource, ImageSource, Polled, RemoteSource, Source, poll
from provisioner.values import AccessRequest, Identity, ObjectRef

WHERE = "spec.source"

# Why what was proved of an author counts no longer, where it is not too old.
LAPSED: dict[Lapse | None, str] = {
    Lapse.DISABLED: "do not count, because their account is disabled",
    Lapse.UNLINKED: "do not count, because their account is not linked to that identity of the cluster any more",
    Lapse.UNTRUSTED: "do not count, because the issuer or proxy that proved them is not trusted there any more",
}


def source_for(catalog: Catalog) -> Source:
    """The source that a catalog names, with its Secret where that is opened for who wrote the spec.

    Raises BadSource, Forbidden in words for people, and Unreachable.
    """
    source = parse_catalog_source(catalog.spec)
    if is_helm(catalog.spec) and source.kind == "http":
        source = replace(source, body={**source.body, "url": index_of(str(source.body.get("url") or ""))})
    wanted = source.reads()
    if not wanted:
        return source_of(source, _refuse_read)
    # It is kept whether who is to read it passed: the right to read as them is given only then (rights).
    try:
        person = _find_reader(catalog, wanted)
    except Forbidden:
        record_reader_proof(catalog, is_proved=False)
        raise
    record_reader_proof(catalog, is_proved=True)
    return source_of(source, reader_as(person, catalog.cluster, connect(catalog.cluster), named_in=WHERE))


def is_helm(spec: Mapping[str, Any]) -> bool:
    return spec.get("format") == "helm"


def is_tags(spec: Mapping[str, Any]) -> bool:
    return spec.get("format") == "tags"


def index_of(url: str) -> str:
    """The address of a Helm repository's index."""
    return url if not url or url.endswith("/index.yaml") else f"{url.rstrip('/')}/index.yaml"


def _refuse_read(ref: ObjectRef) -> Any:
    raise Forbidden(f"{ref} is not read")


def _find_reader(catalog: Catalog, wanted: list[ObjectRef]) -> Identity:
    """Who named what is read. Whoever wrote another part of the source says where it is sent or what it opens, so each
    must be allowed to get it."""
    what = ", ".join(map(str, wanted))
    by_part = authors_by_part(catalog.authors, catalog.spec)
    if by_part is None:
        raise Forbidden(
            f"{what} is not read, because nobody can prove who wrote the source of this Catalog. Apply the admission "
            "policies pratique-authors, then have someone who may get it delete the Catalog and create it again"
        )
    now, found = database_now(), dict[str, Identity]()
    for part, writer in by_part.items():
        asker = access.catalog_author(catalog, writer, now=now)
        if asker.identity not in found.values():
            _check_current(catalog, asker, what)
            for ref in wanted:
                question = AccessRequest("get", resource=f"{ref.kind.lower()}s", namespace=ref.namespace, name=ref.name)
                answer = access.ask_for(asker.identity, catalog.cluster, question, fresh=True)
                if not answer.could_ask:
                    raise Unreachable(answer.words)
                if not answer.allowed:
                    raise Forbidden(
                        f"{ref} is not read: {answer.words}, who wrote the source of this Catalog ({part}). Have "
                        "someone who may get it delete the Catalog and create it again"
                    )
        found[part] = asker.identity
    return found[next(part for part in by_part if part.endswith((".auth.secret.name", "configMap.name")))]


def _check_current(catalog: Catalog, asker: Asker, what: str) -> None:
    place, who = f"{catalog.cluster.name}/catalogs/{catalog.name}", asker.identity.username
    if asker.is_current:
        return
    if asker.lapse is Lapse.UNLISTED:
        raise Forbidden(
            f"{what} is not read: {who} wrote its source, and PRATIQUE_GITOPS_FILE does not list that controller for "
            "this Catalog and all that it names"
        )
    if place not in settings.PRATIQUE["UNATTENDED_READS"]:
        why = LAPSED.get(asker.lapse, f"were verified more than {settings.PRATIQUE['GROUPS_HOURS']} hours ago")
        raise Forbidden(
            f"{what} is not read: the groups of {who}, who wrote its source, {why}. They sign in again, or an operator "
            f"lists {place} in PRATIQUE_UNATTENDED_READS"
        )


TASK = "refresh_catalog"
# So many at once over all workers: each may hold the largest layer of an image.
PLACES = 4
OF_ONE_CLUSTER = 3
OF_ONE_AUTHOR = 2
# What was not read in the time of a turn gets a long one later, in a place of its own: it waits for others like it.
READ_SECONDS, LONG_READ_SECONDS = 60.0, 600.0
SLOW, SLOW_OF_ONE_CLUSTER = 2, 1


def seconds_for(catalog: Catalog) -> float:
    """How long one reading of it may take, however slowly the other side sends."""
    return LONG_READ_SECONDS if is_slow(catalog) else READ_SECONDS


def take_turn(catalog: Catalog, now: datetime) -> bool:
    """Whether it is read now, under the claim that the caller holds: then it has a place until `record_read_end`.

    Where it is not, it stays due, and is called when it is next in line.
    """
    record_read_end(catalog)  # whoever read it before has died
    if catalog.pk not in in_line(now):
        return False
    record_read_start(catalog, now)
    return True


def in_line(now: datetime) -> list[int]:
    """The catalogs that may be read now, in the order in which they get the places that are free."""
    known = Catalog.objects.filter(Q(look_at__lte=now) | Q(reading_since__isnull=False)).order_by("look_at", "pk")
    rows = list(known.only("cluster", "authors", "look_at", "reading_since", "problem_code"))
    tasks = TaskClaim.objects.filter(task=TASK)
    held = set(tasks.filter(claims.held()).values_list("key", flat=True))
    suspects = set(tasks.filter(worker_deaths__gt=0).values_list("key", flat=True))
    resting = set(tasks.filter(rests_until__gte=now).values_list("key", flat=True))
    waiting, taken = {}, []
    for number, row in enumerate(rows):
        alike = (f"slow of {row.cluster_id}", "slow") if is_slow(row) else (str(row.pk), str(row.pk))
        groups = (author_names(row), str(row.cluster_id), "", *alike)
        if row.reading_since is not None and row.pk in held:
            taken.append(groups)
        elif row.look_at is not None and row.look_at <= now and row.pk not in resting:
            # What has killed its worker keeps nobody waiting while it waits for a worker of its own.
            waiting[row.pk] = groups, number + (len(rows) if row.pk in suspects else 0)
    return in_turn(waiting, taken, (OF_ONE_AUTHOR, OF_ONE_CLUSTER, PLACES, SLOW_OF_ONE_CLUSTER, SLOW))


def is_slow(catalog: Catalog) -> bool:
    return catalog.problem_code == SourceTooSlow.code


logger = logging.getLogger(__name__)

RETRY_SECONDS = 5
GROUP = "catalogs"
MIB = 1024 * 1024


class RefreshCatalog(Recurring):
    """Look whether a catalog has other content, read it where it has, and show how it stands."""

    task = TASK

    def __init__(self, catalog_id: int):
        super().__init__(self.task, catalog_id, claims.rows_of_task(self.task, catalog_id))

    def look(self, worker: str) -> bool:
        row = _get_catalog(self.key)
        now = database_now()
        if row is not None and row.look_at is not None and row.look_at <= now and take_turn(row, now):
            was_down = row.problem_since is not None
            try:
                self._read_in_turn(row, worker)
            finally:
                record_read_end(row)
            for pk in in_line(database_now()):
                wake.catalog(pk)
            row = _get_catalog(self.key)
            if row is not None and (row.problem_since is not None) is not was_down:
                # Deployments say of their catalogs since when the source is down.
                for pk in followed_packages.follower_ids(row):
                    wake.deployment(pk)
        if row is not None and row.show_at is not None:
            _show_status(row)
        return False

    def step(self) -> WorkStep:
        return WorkStep("reading a catalog", is_long=True, is_foreign=True)

    def group(self) -> str:
        return GROUP

    def call(self) -> None:
        wake.catalog(self.key)

    def say(self, error: WorkerDied) -> None:
        logger.error("a catalog is not read", extra={"catalog_id": self.key, "error": str(error)})
        row = _get_catalog(self.key)
        if row is not None:
            record_problem(row, code=error.code, words=str(error), began=database_now())

    def _read_in_turn(self, row: Catalog, worker: str) -> None:
        began = database_now()
        try:
            source = source_for(row)
            wait = 0.0  # with no checks at all (SOURCE_POLLS_PER_HOST) a catalog is still read once
            if isinstance(source, RemoteSource) and settings.PRATIQUE["SOURCE_POLLS_PER_HOST"]:
                wait = references.take_turn(str(source.place()))
            if wait:
                postpone_read(row, began + timedelta(seconds=max(wait, 1.0)))
                return
            etag = self._store_content(row, source, worker)
            floats = not isinstance(source, RemoteSource) or source.is_floating(egress())
            record_success(row, etag=etag, began=began, is_floating=floats)
        except (LostClaim, MemoryError):
            raise
        except PratiqueError as exc:
            was_slow = row.problem_code == SourceTooSlow.code
            _record_problem(row, exc)
            if isinstance(exc, SourceTooSlow) and not was_slow:
                postpone_read(row, database_now())  # to its long turn, behind all that wait for one
        except DataError as exc:
            # The database's own words may quote what it was given.
            _record_problem(row, InvalidManifest(f"the database cannot store this catalog ({type(exc).__name__})"))
        except IntegrityError:
            postpone_read(row, began + timedelta(seconds=RETRY_SECONDS))  # it went away, or another worker reads it
        except Exception as exc:  # whatever it is: it would be the next in line again, for ever
            logger.exception("reading a catalog crashed", extra={"catalog_id": row.pk})
            _record_problem(row, Crashed(f"an unexpected error occurred ({type(exc).__name__})"))

    def _store_content(self, row: Catalog, source: Source, worker: str) -> str:
        """Store what the source holds, unless it is offered already, as it would be read now; the ETag of what was
        found."""
        shown = row.edition.digest if row.edition else ""
        offered, found = shown if is_read_as_now(row) else "", Polled("")
        if offered and not is_tags(row.spec) and isinstance(source, RemoteSource) and source.is_floating(egress()):
            limits = _fetch_limits()
            found = poll(
                source, egress=polling_egress(), max_bytes=limits.max_packed_bytes, known=Polled(offered, row.etag)
            )
        if offered and found.digest == offered:
            instruments.source_polls.labels("catalog", "unchanged").inc()
            return found.etag
        _show_status(row)
        rules = egress(timeout_seconds=seconds_for(row))
        if is_tags(row.spec) and isinstance(source, ImageSource):
            fetching = fetch_tags(source, egress=rules)
        else:
            fetching = fetch_catalog(source, egress=rules, limits=_fetch_limits())
        read: ReadCatalog = read_catalog
        if is_helm(row.spec) and isinstance(source, HttpSource):
            read = partial(read_helm_index, address=source.url)
        elif is_tags(row.spec):
            read = partial(read_helm_index, address="")
        with fetching as fetched:
            if fetched.pin.digest != offered:
                store_edition(
                    row, fetched.pin.digest, fetched.files, read=read, check=lambda: self._check_source(row, worker)
                )
                for pk in followed_packages.requests_in_review(row):
                    wake.request(pk)
                instruments.source_polls.labels("catalog", "moved").inc()
                logger.info("a catalog was read", extra={"catalog_id": row.pk, "digest": fetched.pin.digest})
            if not offered and fetched.pin.digest == shown:  # by which followers see that a catalog moved
                followed_packages.ask_followers(row)
        return found.etag if fetched.pin.digest == found.digest else ""

    def _check_source(self, row: Catalog, worker: str) -> None:
        claims.check_still_held(self.rows, worker)
        if not has_same_source(row):
            raise TryLater("its spec was changed while it was read")


def _get_catalog(pk: int) -> Catalog | None:
    return Catalog.objects.select_related("cluster", "edition").filter(pk=pk).first()


def _record_problem(row: Catalog, exc: PratiqueError) -> None:
    outcome = "unavailable" if isinstance(exc, TryLater) else "refused"
    instruments.source_polls.labels("catalog", outcome).inc()
    logger.warning("a catalog could not be read", extra={"catalog_id": row.pk, "code": exc.code})
    wait = exc.retry_after_seconds if isinstance(exc, Unreachable) else 0.0
    record_problem(row, code=exc.code, words=str(exc), began=database_now(), wait=wait)


def _fetch_limits() -> FetchLimits:
    most = settings.PRATIQUE["MAX_CATALOG_MIB"] * MIB
    return FetchLimits(max_packed_bytes=min(most, FetchLimits().max_packed_bytes), max_bytes=most)


def _show_status(row: Catalog) -> None:
    """Write its status; where the cluster does not take it, the sweep tries again."""
    status = catalog_status(row)
    about = {"name": row.name, "uid": row.uid}
    obj = {"apiVersion": GROUP_VERSION, "kind": "Catalog", "metadata": about, "status": status}
    try:
        apply_status(connect(row.cluster), obj)
    except PratiqueError as exc:
        logger.warning("could not show a catalog", extra={"catalog_id": row.pk, "code": exc.code})
        return
    record_shown_status(row, status)
