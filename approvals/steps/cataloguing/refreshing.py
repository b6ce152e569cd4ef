"""One look at the source of a catalog: where it has other content, all of it is read into a new edition."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db import DataError, IntegrityError

from approvals import catalogs, instruments, wake
from approvals.access.port import connect
from approvals.catalogs import ReadCatalog
from approvals.clock import database_now
from approvals.errors import Crashed, LostClaim
from approvals.ledger import claims, references
from approvals.ledger.packages import following
from approvals.models import Catalog
from approvals.steps.cataloguing import turns
from approvals.steps.cataloguing.opening import is_helm, is_tags, source_for
from approvals.steps.cataloguing.shown import status_of
from approvals.steps.mirroring.mirror import GROUP_VERSION, apply_status
from approvals.steps.sources import egress, polling_egress
from approvals.working import Recurring, WorkStep
from provisioner.catalogs import (
    FetchedCatalog,
    FetchLimits,
    fetched_catalog,
    fetched_tags,
    read_catalog,
    read_helm_index,
)
from provisioner.errors import InvalidManifest, PratiqueError, SourceTooSlow, TryLater, Unreachable, WorkerDied
from provisioner.source import HttpSource, ImageSource, Polled, RemoteSource, Source, poll

logger = logging.getLogger(__name__)

TURN_SECONDS = 5
GROUP = "catalogs"
MIB = 1024 * 1024


class RefreshCatalog(Recurring):
    """Look whether a catalog has other content, read it where it has, and show how it stands."""

    task = turns.TASK

    def __init__(self, catalog_id: int):
        super().__init__(self.task, catalog_id, claims.rows_of_task(self.task, catalog_id))

    def look(self, worker: str) -> bool:
        row = _row(self.key)
        now = database_now()
        if row is not None and row.look_at is not None and row.look_at <= now and turns.take(row, now):
            was_down = row.problem_since is not None
            try:
                self._read_in_turn(row, worker)
            finally:
                catalogs.note_idle(row)
            for pk in turns.in_line(database_now()):
                wake.catalog(pk)
            row = _row(self.key)
            if row is not None and (row.problem_since is not None) is not was_down:
                _tell_followers(row)
        if row is not None and row.show_at is not None:
            _show(row)
        return False

    def step(self) -> WorkStep:
        return WorkStep("reading a catalog", is_long=True, is_foreign=True)

    def group(self) -> str:
        return GROUP

    def call(self) -> None:
        wake.catalog(self.key)

    def say(self, error: WorkerDied) -> None:
        logger.error("a catalog is not read", extra={"catalog_id": self.key, "error": str(error)})
        row = _row(self.key)
        if row is not None:
            catalogs.note_problem(row, code=error.code, words=str(error), began=database_now())

    def _read_in_turn(self, row: Catalog, worker: str) -> None:
        began = database_now()
        try:
            source = source_for(row)
            if wait := _wait_for_turn(source):
                catalogs.postpone(row, began + timedelta(seconds=max(wait, 1.0)))
                return
            etag = self._read(row, source, worker)
            floats = not isinstance(source, RemoteSource) or source.is_floating(egress())
            catalogs.note_seen(row, etag=etag, began=began, is_floating=floats)
        except (LostClaim, MemoryError):
            raise
        except PratiqueError as exc:
            was_slow = row.problem_code == SourceTooSlow.code
            _note_problem(row, exc)
            if isinstance(exc, SourceTooSlow) and not was_slow:
                catalogs.postpone(row, database_now())  # to its long turn, behind all that wait for one
        except DataError as exc:
            # The database's own words may quote what it was given.
            _note_problem(row, InvalidManifest(f"the database cannot store this catalog ({type(exc).__name__})"))
        except IntegrityError:
            catalogs.postpone(row, began + timedelta(seconds=TURN_SECONDS))  # it went away, or another worker reads it
        except Exception as exc:
            # It would be the next in line again, for ever.
            logger.exception("reading a catalog crashed", extra={"catalog_id": row.pk})
            _note_problem(row, Crashed(f"an unexpected error occurred ({type(exc).__name__})"))

    def _read(self, row: Catalog, source: Source, worker: str) -> str:
        """Store what the source holds, unless it is offered already, as it would be read now; the ETag of what was
        found."""
        shown = row.edition.digest if row.edition else ""
        offered, found = shown if catalogs.is_read_as_now(row) else "", Polled("")
        if offered and not is_tags(row.spec) and isinstance(source, RemoteSource) and source.is_floating(egress()):
            limits = _limits()
            found = poll(
                source, egress=polling_egress(), max_bytes=limits.max_packed_bytes, known=Polled(offered, row.etag)
            )
        if offered and found.digest == offered:
            instruments.source_polls.labels("catalog", "unchanged").inc()
            return found.etag
        _show(row)
        with _fetched(row, source) as fetched:
            if fetched.pin.digest != offered:
                catalogs.store(
                    row,
                    fetched.pin.digest,
                    fetched.files,
                    read=_reader_of(row, source),
                    check=lambda: self._check(row, worker),
                )
                for pk in following.in_review(row):
                    wake.request(pk)
                instruments.source_polls.labels("catalog", "moved").inc()
                logger.info("a catalog was read", extra={"catalog_id": row.pk, "digest": fetched.pin.digest})
            if not offered and fetched.pin.digest == shown:  # by which followers see that a catalog moved
                following.ask_again(row)
        return found.etag if fetched.pin.digest == found.digest else ""

    def _check(self, row: Catalog, worker: str) -> None:
        claims.check_still_held(self.rows, worker)
        if not catalogs.is_same_source(row):
            raise TryLater("its spec was changed while it was read")


def _tell_followers(row: Catalog) -> None:
    """Deployments say of their catalogs since when the source is down."""
    for pk in following.followers(row):
        wake.deployment(pk)


def _row(pk: int) -> Catalog | None:
    return Catalog.objects.select_related("cluster", "edition").filter(pk=pk).first()


def _wait_for_turn(source: Source) -> float:
    """How many seconds, 0 for none. With no checks at all (SOURCE_POLLS_PER_HOST) a catalog is still read once."""
    if not isinstance(source, RemoteSource) or not settings.PRATIQUE["SOURCE_POLLS_PER_HOST"]:
        return 0.0
    return references.take_turn(str(source.place()))


def _note_problem(row: Catalog, exc: PratiqueError) -> None:
    outcome = "unavailable" if isinstance(exc, TryLater) else "refused"
    instruments.source_polls.labels("catalog", outcome).inc()
    logger.warning("a catalog could not be read", extra={"catalog_id": row.pk, "code": exc.code})
    wait = exc.retry_after_seconds if isinstance(exc, Unreachable) else 0.0
    catalogs.note_problem(row, code=exc.code, words=str(exc), began=database_now(), wait=wait)


def _fetched(row: Catalog, source: Source) -> AbstractContextManager[FetchedCatalog]:
    rules = egress(timeout_seconds=turns.seconds_for(row))
    if is_tags(row.spec) and isinstance(source, ImageSource):
        return fetched_tags(source, egress=rules)
    return fetched_catalog(source, egress=rules, limits=_limits())


def _reader_of(row: Catalog, source: Source) -> ReadCatalog:
    if is_helm(row.spec) and isinstance(source, HttpSource):
        return partial(read_helm_index, address=source.url)
    if is_tags(row.spec):
        return partial(read_helm_index, address="")
    return read_catalog


def _limits() -> FetchLimits:
    most = settings.PRATIQUE["MAX_CATALOG_MIB"] * MIB
    return FetchLimits(max_packed_bytes=min(most, FetchLimits().max_packed_bytes), max_bytes=most)


def _show(row: Catalog) -> None:
    """Write its status; where the cluster does not take it, the sweep tries again."""
    status = status_of(row)
    about = {"name": row.name, "uid": row.uid}
    obj = {"apiVersion": GROUP_VERSION, "kind": "Catalog", "metadata": about, "status": status}
    try:
        apply_status(connect(row.cluster), obj)
    except PratiqueError as exc:
        logger.warning("could not show a catalog", extra={"catalog_id": row.pk, "code": exc.code})
        return
    catalogs.note_shown(row, status)
