"""A comparison that somebody asked for: both bundles are fetched and rendered, and compared as reports do.

It is no request: nothing is stored of what was fetched, nothing can be approved, and the live objects of the cluster
are not looked at.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from approvals import store, wake
from approvals.access.port import connect
from approvals.catalogs import comparisons
from approvals.catalogs.comparisons import MOST_ATTEMPTS, ComparisonWish, split_chart, suggested_names
from approvals.clock import database_now
from approvals.errors import LostClaim
from approvals.ledger import claims, made_values
from approvals.models import BundleComparison, Request, TaskClaim
from approvals.models import Content as ContentRow
from approvals.steps.catalogs.comparison_record import ComparedBundles, changed_lines, comparison_record
from approvals.steps.sources import check_object_count, egress, image_source, limits
from approvals.working import Work, WorkStep, in_turn
from provisioner import pipeline, render
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import BadBundle, BadConfig, BadSource, OutOfTime, PratiqueError, TryLater, WorkerDied
from provisioner.masking import masked
from provisioner.rbac import RbacSubject
from provisioner.retention import SECRET
from provisioner.sentences import some
from provisioner.source import HttpSource
from provisioner.values import Content

logger = logging.getLogger(__name__)

# So many at once over all workers, on one cluster, and of one person: what is asked for out of curiosity holds up
# neither requests nor the others who ask (S40).
AT_ONCE = 3
ON_ONE_CLUSTER = 2
AT_ONCE_EACH = 1
AGAIN_SECONDS = 15
FETCH_SECONDS = 300.0
# For one comparison as a whole.
MOST_SECONDS = 600.0
GROUP = "comparisons"
WATCHES = "config.watchNamespace is missing"
Config = Mapping[str, Any]


class CompareBundles(Work):
    """Work out what would change from one bundle to another."""

    task = "compare_bundles"

    def __init__(self, comparison_id: int):
        super().__init__(self.task, comparison_id, claims.rows_of_task(self.task, comparison_id))

    def look(self, worker: str) -> bool:
        row = comparisons.get_comparison(self.key)
        if row is None or row.state != BundleComparison.State.WAITING:
            return False
        if row.look_again_at is not None and row.look_again_at > database_now():
            return False
        if row.pk not in in_line(database_now(), but=row.pk):
            comparisons.record_progress(row, "waiting for other comparisons")
            return False
        self._compare(row, worker)
        for pk in in_line(database_now()):
            wake.comparison(pk)
        return False

    def step(self) -> WorkStep:
        return WorkStep("comparing two bundles of a catalog", is_long=True, is_foreign=True)

    def group(self) -> str:
        return GROUP

    def call(self) -> None:
        wake.comparison(self.key)

    def give_up(self, error: WorkerDied) -> None:
        comparisons.give_up_comparison(self.key, code=error.code, words=str(error), now=database_now())

    def _compare(self, row: BundleComparison, worker: str) -> None:
        try:
            if comparisons.count_attempt(row) > MOST_ATTEMPTS:
                # Whatever the attempts failed with stands in the log.
                self._fail(row, worker, PratiqueError(f"it failed {MOST_ATTEMPTS} times with an unexpected error"))
                return
            wish = ComparisonWish.of(row.wish)
            pace = Pace(lambda words: comparisons.record_progress(row, words), time.monotonic() + MOST_SECONDS)
            found = compare_wish(wish, connect(row.cluster), pace)
            result = comparison_record(found)
            with transaction.atomic(durable=True):
                claims.check_still_held(self.rows, worker)
                comparisons.finish_comparison(row, result, found.changed.lines, database_now())
        except LostClaim:
            raise
        except TryLater as exc:
            if row.attempts >= MOST_ATTEMPTS or isinstance(exc, OutOfTime):
                self._fail(row, worker, exc)
            else:
                comparisons.retry_later(
                    row,
                    database_now() + timedelta(seconds=AGAIN_SECONDS * row.attempts),
                    why=f"it will be tried again: {exc}",
                )
        except PratiqueError as exc:
            self._fail(row, worker, exc)

    def _fail(self, row: BundleComparison, worker: str, exc: PratiqueError) -> None:
        logger.warning("a comparison failed", extra={"comparison_id": row.pk, "code": exc.code})
        with transaction.atomic(durable=True):
            claims.check_still_held(self.rows, worker)
            # Shown to who may get the deployment whose config it is; of others there is none.
            words = exc.in_full if isinstance(exc, BadBundle) else str(exc)
            comparisons.fail_comparison(row, code=exc.code, words=words, now=database_now())


def in_line(now: datetime, but: int = 0) -> list[int]:
    """The comparisons that may be worked on now, in the order in which they get the places that are free.

    What is claimed has a place, `but` that of who asks: it is claimed to be looked at, and may have to wait.
    """
    held = TaskClaim.objects.filter(claims.held(), task=CompareBundles.task).exclude(key=but)
    at_work = set(held.values_list("key", flat=True))
    waiting, taken = {}, []
    for number, (pk, user, cluster) in enumerate(comparisons.due_comparisons(now).values_list("pk", "user", "cluster")):
        groups = (str(user), str(cluster), "")
        if pk in at_work:
            taken.append(groups)
        else:
            waiting[pk] = groups, number
    return in_turn(waiting, taken, (AT_ONCE_EACH, ON_ONE_CLUSTER, AT_ONCE))


@dataclass(frozen=True, slots=True)
class Pace:
    """How far a comparison is: `say` takes what begins in words; it ends at `ends_at` (time.monotonic)."""

    say: Callable[[str], None]
    ends_at: float

    def begin(self, words: str) -> float:
        """Say what begins, and return the seconds that are left; raises OutOfTime where none are."""
        left = self.left(words)
        self.say(words)
        return left

    def left(self, words: str) -> float:
        """The seconds that are left for what `words` say; raises OutOfTime where none are."""
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"the comparison took more than {MOST_SECONDS:.0f} s: it was ended before {words}")
        return left


def compare_wish(wish: ComparisonWish, api: Api, pace: Pace) -> ComparedBundles:
    """Fetch, render and compare what `wish` names; `api` tells which kinds the cluster serves, and its roles.

    Raises as `pipeline.prepare` does, TryLater where the API server does not answer, and OutOfTime.
    """
    api = api.until(pace.ends_at)
    with render.keep_engine():
        after, config = _render_after(wish, api, pace)
        wish_before = replace(wish, namespace=after.install_namespace, account=after.service_account)
        before = _render_before(wish_before, api, pace)
    pace.begin("comparing")
    images = tuple(settings.PRATIQUE["ALLOWED_IMAGES"])
    report = pipeline.look_offline(after, before, allowed_images=images, is_for_reader=not wish.content)
    permissions = pipeline.permissions(None, after, before)
    pace.begin("comparing the lines of objects")
    changed = changed_lines(report.plan.actions, begin=partial(pace.left, "comparing the lines of all objects"))
    installer = None
    if before is None:
        pace.begin("finding the least rights of an installer")
        account = RbacSubject("ServiceAccount", after.service_account, after.install_namespace)
        # It is shown to all who may get the Catalog, so that it must not tell what they may not ask (S09).
        installer = pipeline.least_rights(api, after, account=account, tells_namespaces=False)
    return ComparedBundles(before, after, config, report, permissions, installer, changed)


def _render_after(wish: ComparisonWish, api: Api, pace: Pace) -> tuple[Content, Config]:
    """The bundle that is to run, in the namespace that is asked for, else in its own, and the config that it has."""
    namespace, account = suggested_names(wish.package)
    first = replace(wish, namespace=wish.namespace or namespace, account=wish.account or account)
    fetched = _fetch_bundle(wish, wish.after, pace)
    content, config = _render_bundle(first, fetched, api, pace)
    suggested = content.suggested_namespace
    if wish.namespace or suggested in ("", content.install_namespace):
        return content, config
    return _render_bundle(replace(first, namespace=suggested), fetched, api, pace)


def _render_before(wish: ComparisonWish, api: Api, pace: Pace) -> Content | None:
    if wish.before:
        return _render_bundle(wish, _fetch_bundle(wish, wish.before, pace), api, pace)[0]
    if not wish.content:
        return None
    row = ContentRow.objects.filter(pk=wish.content).first()
    if row is None:
        raise BadSource("the content that runs is not stored any more")
    return _without_made_values(store.get(row), row)


def _without_made_values(content: Content, row: ContentRow) -> Content:
    """The content as everybody may read it (S44); of its Secrets nobody reads a value."""
    request = Request.objects.filter(content=row).order_by("-number").first()
    if request is None or not (
        hidden := made_values.hidden_texts(request.deployment_id, request.made_values.get("values", ()))
    ):
        return content
    manifests, hooks = (
        tuple(
            manifest
            if manifest.ref.group_kind == SECRET
            else replace(manifest, body=hidden.of_object(manifest.ref, manifest.body))
            for manifest in part
        )
        for part in (content.manifests, content.hooks)
    )
    return replace(content, manifests=manifests, hooks=hooks)


def _fetch_bundle(wish: ComparisonWish, content: str, pace: Pace) -> pipeline.FetchedSources:
    left = pace.begin(f"fetching {content}")
    rules = egress(timeout_seconds=min(FETCH_SECONDS, left))
    chart = split_chart(content)
    source = HttpSource(chart[0], checksum=chart[1]) if chart else image_source(content)
    options = pipeline.PrepareOptions(wish.namespace, format=wish.format, config=dict(wish.config))
    return pipeline.fetch_sources([source], options=options, egress=rules, credentials=None, limits=limits())


def _render_bundle(
    wish: ComparisonWish, fetched: pipeline.FetchedSources, api: Api, pace: Pace
) -> tuple[Content, Config]:
    """Rendered once more where its own config is needed; what was fetched stays."""
    pace.begin(f"rendering {some([masked(pin.reference) for pin, _ in fetched.trees])}")
    try:
        return _prepare_content(wish, fetched, api, wish.config), wish.config
    except BadConfig as exc:
        if wish.config or not str(exc).startswith(WATCHES):
            raise
    # An operator that cannot watch all namespaces watches its own.
    own = {"watchNamespace": wish.namespace}
    return _prepare_content(wish, fetched, api, own), own


def _prepare_content(wish: ComparisonWish, fetched: pipeline.FetchedSources, api: Api, config: Config) -> Content:
    is_upgrade = bool(wish.before or wish.content)
    target = pipeline.target_of(api, is_upgrade=is_upgrade) if render.is_told_of_target(wish.format) else None
    content = pipeline.render_sources(
        fetched,
        options=pipeline.PrepareOptions(
            format=wish.format,
            install_namespace=wish.namespace,
            service_account=wish.account,
            config=dict(config),
            target=target,
        ),
        limits=limits(),
        is_namespaced=api.is_namespaced,
    )
    check_object_count(content)
    return content
