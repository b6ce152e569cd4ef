"""What a person asks to compare: who may, which bundles that names, and how they are rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass

from approvals import access, catalogs
from approvals.access import Caller, Permission
from approvals.bundle_spec import BundleSpec
from approvals.catalogs.comparisons import ComparisonWish, content_of
from approvals.errors import InvalidInput, NotFound
from approvals.models import BundleDeployment, Catalog, Cluster, Revision
from provisioner.catalogs import CatalogBundle, CatalogOffer, NoChoice, Package, PackageWish, choose
from provisioner.errors import BadConfig, InvalidRange
from provisioner.sentences import some
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
    if cluster is None or _is_nobody(access.may_read_catalog(by, cluster, catalog)):
        raise _no_cluster(name)
    return cluster


def _is_nobody(reading: Permission) -> bool:
    return reading.refused is not None and not reading.is_too_old


def _no_cluster(name: str) -> NotFound:
    return NotFound(f"there is no cluster {name}, or none that you may read")


def check_may_compare(
    *, by: Caller, cluster: Cluster, catalog: str, deployment: str = "", is_fresh: bool = False
) -> None:
    """Raise unless Kubernetes lets `by` get the catalog and create deployments; NotFound where they may not get it.

    What this deployment runs is compared for who may get it: the bundle, which anyone may have written, can print all
    of the config that it is rendered with (S09).
    """
    reading = access.may_read_catalog(by, cluster, catalog)
    if _is_nobody(reading):
        raise _no_cluster(cluster.name)
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


def comparison_asked(*, by: Caller, cluster: Cluster, catalog: str, question: ComparisonQuestion) -> AskedComparison:
    """What a question means now.

    Raises as `check_may_compare`, NotFound, and InvalidInput for what cannot be compared.
    """
    check_may_compare(by=by, cluster=cluster, catalog=catalog, deployment=question.deployment)
    row = catalogs.catalog(cluster, catalog)
    package = catalogs.package(row, question.package) if row else None
    if row is None or package is None:
        raise NotFound(f"catalog {catalog} on cluster {cluster.name} has no package {question.package}")
    _check_names(question)
    after = bundle_named(package, question.after, field="to")
    if question.before and question.deployment:
        raise InvalidInput("what runs is given twice, as a version and as a deployment", field="deployment")
    before = bundle_named(package, question.before, field="from") if question.before else None
    if before is not None and before.name == after.name:
        raise InvalidInput(f"both are {after.name}: name two different bundles", field="to")
    made = ComparisonWish(
        format_offered(row),
        package.name,
        _content_of(row, before) if before else "",
        _content_of(row, after),
        namespace=question.namespace,
        account=question.account,
    )
    if not question.deployment:
        return AskedComparison(row, package, before, after, None, made)
    deployment = _deployment(cluster, question.deployment)
    return AskedComparison(row, package, None, after, deployment, _beside(deployment, made))


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


def bundle_named(package: Package, words: str, *, field: str) -> CatalogBundle:
    """The bundle of this name, else the only one of this version. Raises InvalidInput."""
    if (exact := package.bundles.get(words)) is not None:
        return exact
    version = words.removeprefix("v")
    fitting = [one for one in package.bundles.values() if version in (str(one.version), one.pin)]
    if len(fitting) == 1:
        return fitting[0]
    ordered = sorted(package.bundles.values(), key=lambda one: one.rank, reverse=True)
    has = some([str(one.version) for one in ordered], 10) or "none"
    if not fitting:
        raise InvalidInput(f"package {package.name} has no bundle or version {words[:80]!r}; it has {has}", field=field)
    names = some(sorted(one.name for one in fitting))
    raise InvalidInput(f"several bundles have the version {words}: name one of {names}", field=field)


def _check_names(question: ComparisonQuestion) -> None:
    for name, form in NAMES.items():
        text = getattr(question, name)
        if text and not form.fullmatch(text):
            raise InvalidInput(f"{text[:80]!r} cannot be the name of the {name}", field=FIELDS[name])


def _content_of(row: Catalog, bundle: CatalogBundle) -> str:
    if bundle.can_be_pinned:
        return content_of(bundle)
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


def _deployment(cluster: Cluster, name: str) -> BundleDeployment:
    rows = BundleDeployment.objects.filter(cluster=cluster, name=name, gone_at__isnull=True)
    found = rows.select_related("cluster").first()
    if found is None:
        raise NotFound(f"there is no deployment {name} on cluster {cluster.name}")
    return found


def _beside(deployment: BundleDeployment, wish: ComparisonWish) -> ComparisonWish:
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
    if _looks_up(spec):
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


def _looks_up(spec: BundleSpec) -> bool:
    try:
        return spec.lookups() is not None
    except BadConfig:
        return True
