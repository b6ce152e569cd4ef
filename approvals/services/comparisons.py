"""Compare two bundles of a catalog on demand, for people who may get the catalog and create a deployment.

A comparison of what a deployment runs also needs the right to get that deployment; rights are asked on every look.
A comparison is no request, and approves nothing. What is compared was fetched without credentials (S08), so whoever
has these rights may know the result; of what a deployment runs, people are shown what they may see (S09).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from approvals import access, wake
from approvals.access import Caller, Permission
from approvals.access.sight import ReportSight, Sight, is_secret, may_see_roles, reference
from approvals.bundle_spec import BundleSpec
from approvals.catalogs import comparisons
from approvals.catalogs.comparisons import ComparisonWish, fetched_content
from approvals.catalogs.editions import find_catalog, find_package
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotFound, TooMany
from approvals.models import BundleComparison, BundleDeployment, Catalog, Cluster, Revision
from approvals.rate_limits import Limit, take
from provisioner.catalogs.choice import CatalogOffer, NoChoice, PackageWish, choose
from provisioner.catalogs.values import CatalogBundle, Package
from provisioner.errors import BadConfig, InvalidRange
from provisioner.review.base.difference import DiffLine
from provisioner.sentences import number, some
from provisioner.versions import constraint_of

# What each format of a catalog offers.
FORMATS = {"helm": "helm", "tags": "helm"}
OPERATOR = "registry-v1"
# As Kubernetes lets them be named.
NAMES = {
    "namespace": re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"),
    "account": re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?"),
}
FIELDS = {"namespace": "install_namespace", "account": "service_account"}


@dataclass(frozen=True, slots=True)
class ComparisonQuestion:
    """What is asked, in the words of a person.

    `before` and `after` are names or versions of bundles; "" before is nothing, or what `deployment` runs where that is
    given. "" for `namespace` and `account` leaves them to the bundle.
    """

    package: str
    after: str
    before: str = ""
    deployment: str = ""
    namespace: str = ""
    account: str = ""


@dataclass(frozen=True, slots=True)
class AskedComparison:
    """A question that may be asked, with what it names."""

    catalog: Catalog
    package: Package
    before: CatalogBundle | None
    after: CatalogBundle
    deployment: BundleDeployment | None
    wish: ComparisonWish


def cluster_to_compare_on(*, by: Caller, name: str, catalog: str) -> Cluster:
    """The cluster of this name; who is nobody there learns not even that it exists (S02).

    Raises NotFound.
    """
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None or _cannot_read(access.may_read_catalog(by, cluster, catalog)):
        raise _cluster_not_found(name)
    return cluster


def _cannot_read(reading: Permission) -> bool:
    return reading.refused is not None and not reading.is_too_old


def _cluster_not_found(name: str) -> NotFound:
    return NotFound(f"there is no cluster {name}, or none that you may read")


def check_may_compare(
    *, by: Caller, cluster: Cluster, catalog: str, deployment: str = "", is_fresh: bool = False
) -> None:
    """Raise unless Kubernetes lets `by` get the catalog and create deployments; NotFound where they may not get it.

    What this deployment runs is compared for who may get it: the bundle, which anyone may have written, can print all
    of the config that it is rendered with (S09).
    """
    reading = access.may_read_catalog(by, cluster, catalog)
    if _cannot_read(reading):
        raise _cluster_not_found(cluster.name)
    if reading.could_ask and not reading.allowed and not reading.is_too_old:
        raise NotFound(f"there is no catalog {catalog} on cluster {cluster.name}, or none that you may get")
    reading.check()
    access.may(by, cluster, "create", resource="bundledeployments", fresh=is_fresh).check()
    if deployment:
        access.may_read(by, cluster).check()
        access.may(by, cluster, "get", resource="bundledeployments", name=deployment, fresh=is_fresh).check()


def format_offered(catalog: Catalog) -> str:
    """The `spec.format` of deployments that take a bundle of this catalog."""
    return FORMATS.get(str(catalog.spec.get("format") or ""), OPERATOR)


def resolve_comparison(*, by: Caller, cluster: Cluster, catalog: str, question: ComparisonQuestion) -> AskedComparison:
    """What a question means now.

    Raises as `check_may_compare`, NotFound, and InvalidInput for what cannot be compared.
    """
    check_may_compare(by=by, cluster=cluster, catalog=catalog, deployment=question.deployment)
    row = find_catalog(cluster, catalog)
    package = find_package(row, question.package) if row else None
    if row is None or package is None:
        raise NotFound(f"catalog {catalog} on cluster {cluster.name} has no package {question.package}")
    for name, form in NAMES.items():
        text = getattr(question, name)
        if text and not form.fullmatch(text):
            raise InvalidInput(f"{text[:80]!r} cannot be the name of the {name}", field=FIELDS[name])
    after = find_bundle(package, question.after, field="to")
    if question.before and question.deployment:
        raise InvalidInput("what runs is given twice, as a version and as a deployment", field="deployment")
    before = find_bundle(package, question.before, field="from") if question.before else None
    if before is not None and before.name == after.name:
        raise InvalidInput(f"both are {after.name}: name two different bundles", field="to")
    made = ComparisonWish(
        format_offered(row),
        package.name,
        _fetchable_content(row, before) if before else "",
        _fetchable_content(row, after),
        namespace=question.namespace,
        account=question.account,
    )
    if not question.deployment:
        return AskedComparison(row, package, before, after, None, made)
    rows = BundleDeployment.objects.filter(cluster=cluster, name=question.deployment, gone_at__isnull=True)
    deployment = rows.select_related("cluster").first()
    if deployment is None:
        raise NotFound(f"there is no deployment {question.deployment} on cluster {cluster.name}")
    return AskedComparison(row, package, None, after, deployment, _wish_beside_running(deployment, made))


def bundle_to_install(package: Package, channel: str, versions: str) -> CatalogBundle:
    """What a new deployment would take of a package, by channel and range of versions, each "" for any.

    Raises InvalidInput where that is none.
    """
    try:
        wanted = constraint_of(versions) if versions else None
    except InvalidRange as exc:
        raise InvalidInput(f"version: {exc}", field="version") from exc
    wish = PackageWish(package.name, (channel,) if channel else (), wanted)
    found = choose(wish, [CatalogOffer("", package)])
    if isinstance(found, NoChoice):
        raise InvalidInput(found.words, field="package")
    return found.bundle


def find_bundle(package: Package, words: str, *, field: str) -> CatalogBundle:
    """The bundle of this name, else the only one of this version. Raises InvalidInput."""
    if (exact := package.bundles.get(words)) is not None:
        return exact
    version = words.removeprefix("v")
    fitting = [bundle for bundle in package.bundles.values() if version in (str(bundle.version), bundle.pin)]
    if len(fitting) == 1:
        return fitting[0]
    ordered = sorted(package.bundles.values(), key=lambda one: one.rank, reverse=True)
    has = some([str(one.version) for one in ordered], 10) or "none"
    if not fitting:
        raise InvalidInput(f"package {package.name} has no bundle or version {words[:80]!r}; it has {has}", field=field)
    names = some(sorted(one.name for one in fitting))
    raise InvalidInput(f"several bundles have the version {words}: name one of {names}", field=field)


def _fetchable_content(row: Catalog, bundle: CatalogBundle) -> str:
    if bundle.can_be_pinned:
        return fetched_content(bundle)
    if bundle.url:
        raise InvalidInput(
            f"catalog {row.name} has no digest of chart {bundle.name}, and only what a digest pins can be compared: "
            "name its URL and its checksum as a source of kind http, and the report of the request says what would "
            "change",
            field="to",
        )
    raise InvalidInput(
        f"catalog {row.name} names no image for bundle {bundle.name}, so it cannot be fetched", field="to"
    )


def _wish_beside_running(deployment: BundleDeployment, wish: ComparisonWish) -> ComparisonWish:
    """The same bundle as the deployment would have it, against what it runs."""
    spec = deployment.bundle_spec
    runs = deployment.revisions.filter(state=Revision.State.ACTIVE).first()
    if runs is None:
        raise InvalidInput(f"nothing of {deployment.name} runs yet: compare with nothing", field="deployment")
    if len(spec.sources) != 1:
        raise InvalidInput(f"{deployment.name} has several sources: only a request compares them", field="deployment")
    # Another catalog may have it, too, and what comes from elsewhere may come from a catalog next.
    source = spec.sources[0]
    if source.is_catalog and (package := source.body.get("package")) != wish.package:
        words = f"{deployment.name} takes package {package}: choose a version of that package, or another deployment"
        raise InvalidInput(words, field="deployment")
    if _has_lookups(spec):
        raise InvalidInput(
            f"{deployment.name} looks up objects of the cluster when it is rendered: only a request does that",
            field="deployment",
        )
    return ComparisonWish(
        spec.format,
        wish.package,
        "",
        wish.after,
        content=runs.content_id,
        namespace=spec.install_namespace,
        account=spec.service_account,
        config=dict(spec.config),
    )


def _has_lookups(spec: BundleSpec) -> bool:
    try:
        return spec.lookups() is not None or bool(spec.values_from())
    except BadConfig:
        return True


HOUR = 3600
# Kubernetes is asked at most this often for one result.
MOST_ASKED = 300
WORDS = "you have asked for {most} comparisons within an hour, which is the limit (PRATIQUE_COMPARISONS_PER_HOUR)"


@dataclass(frozen=True, slots=True)
class ComparedLines:
    """What differs in one object of a comparison; `left` counts the lines that are not kept.

    Where the viewer may not get the object, `is_hidden` says so and there are no lines (S09).
    """

    ref: dict[str, str]
    lines: list[DiffLine] = field(default_factory=list)
    left: int = 0
    is_hidden: bool = False


def find_known_comparison(asked: AskedComparison) -> BundleComparison | None:
    """The comparison that is under way, or has a result that still counts."""
    return comparisons.find_comparison(asked.catalog.cluster, asked.wish, database_now())


def compare_bundles(*, by: Caller, asked: AskedComparison) -> BundleComparison:
    """Have it worked out, unless it is known or under way already.

    Raises as `check_may_compare`, TooMany and TooManyAttempts where the caller has asked for too many.
    """
    cluster = asked.catalog.cluster
    _check_asked(by, asked, is_fresh=True)
    found = find_known_comparison(asked)
    if found is not None and found.state != BundleComparison.State.FAILED:
        return found
    most = settings.PRATIQUE["COMPARISONS"]
    if comparisons.count_running(by.user) >= most:
        raise TooMany(
            f"{number(most, 'comparison')} that you asked for {'is' if most == 1 else 'are'} still being prepared, and "
            "you may have no more at the same time (PRATIQUE_COMPARISONS): wait until one of them has ended"
        )
    limit = Limit("comparisons", settings.PRATIQUE["COMPARISONS_PER_HOUR"], HOUR)
    take(limit, str(by.user.pk), words=f"{WORDS.format(most=limit.most)}: try again in {{time}}")
    if found is not None:
        comparisons.forget_failed(found)
    made = comparisons.start_comparison(cluster, asked.wish, user=by.user, most=most, now=database_now())
    wake.comparison(made.pk)
    return made


def read_comparison_result(*, by: Caller, asked: AskedComparison, row: BundleComparison) -> dict[str, Any] | None:
    """The result as `by` may see it; None where there is none yet. `hidden` says what is left out, in words.

    Raises as `check_may_compare`.
    """
    _check_asked(by, asked)
    if row.result is None:
        return None
    result: dict[str, Any] = row.result
    held = set(result["held"])
    told = {key: value for key, value in result.items() if key != "held"} | {"hidden": []}
    if asked.deployment is None:
        return told
    # Of what a deployment runs, people see what they may get, whatever the bundle prints of its config (S09).
    report = told["report"]
    plan = report["plan"]
    # Sight tells what exists by its state before.
    there = [
        {**action, "before": {} if comparisons.object_key(action["ref"]) in held else None}
        for action in plan["actions"]
    ]
    body = {**report, "plan": {**plan, "actions": there}}
    sight = ReportSight(Sight(by, asked.catalog.cluster, limit=MOST_ASKED), body)
    actions = [{**sight.action(one), "before": None, "after": None} for one in there]
    hidden_places = {str(at) for at, one in enumerate(actions) if one.get("hidden")}
    changed = {at: counts for at, counts in told["changed"].items() if at not in hidden_places}
    shown = {
        **body,
        "findings": [sight.finding(finding) for finding in body["findings"]],
        "private": sight.private(body),
        "plan": {**plan, "actions": actions},
    }
    images = [
        image
        for image in told["images"]
        if comparisons.object_key(image["ref"]) not in held or sight.may_see(image["ref"])
    ]
    hidden = []
    # Of comparisons that an earlier version made: whoever sees a digest could try values of Secrets on it (S38).
    is_told = not any(is_secret(one["ref"]) for one in there)
    digests = told["content_digests"] if is_told else {"before": "", "after": ""}
    if len(images) != len(told["images"]):
        hidden.append(f"{number(len(told['images']) - len(images), 'image')} of objects that you may not get")
    permissions = told["permissions"]
    if not may_see_roles(by, asked.catalog.cluster):
        permissions = {"worst": permissions["worst"], "accounts": [], "everybody": [], "problems": []}
        hidden.append("permissions, because you may not get all roles and bindings")
    return {
        **told,
        "config": {},
        "content_digests": digests,
        "report": shown,
        "changed": changed,
        "images": images,
        "permissions": permissions,
        "hidden": hidden,
    }


def read_comparison_lines(*, by: Caller, asked: AskedComparison, row: BundleComparison, position: int) -> ComparedLines:
    """What differs in the object at this position of the plan.

    Raises as `check_may_compare`, and NotFound where there is no such position, or no result yet.
    """
    _check_asked(by, asked)
    actions = row.result["report"]["plan"]["actions"] if row.result else []
    if position >= len(actions):
        raise NotFound("the comparison has no such object: compare again, and open the object from there")
    ref = actions[position]["ref"]
    is_held = asked.deployment is not None and comparisons.object_key(ref) in row.result["held"]
    if is_held and not Sight(by, asked.catalog.cluster, limit=MOST_ASKED).may_see(reference(ref)):
        return ComparedLines(ref, is_hidden=True)
    found = row.lines.get(str(position))
    if found is None:
        return ComparedLines(ref)
    lines = [DiffLine(kind, text, old=old, new=new) for kind, text, old, new in found["lines"]]
    return ComparedLines(ref, lines, found["left"])


def _check_asked(by: Caller, asked: AskedComparison, *, is_fresh: bool = False) -> None:
    catalog, deployment = asked.catalog, asked.deployment.name if asked.deployment else ""
    check_may_compare(by=by, cluster=catalog.cluster, catalog=catalog.name, deployment=deployment, is_fresh=is_fresh)
