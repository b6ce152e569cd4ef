"""The bundle of a catalog that a source takes: chosen once for a request, by what runs and what is offered then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any

from django.db.models import QuerySet

from approvals.bundle_spec import SpecSource, UpgradePolicy
from approvals.catalogs.editions import catalogs_of, find_catalog, find_package, list_packages
from approvals.catalogs.history import find_content_change
from approvals.errors import LostClaim
from approvals.models import BundleDeployment, Catalog, Request, Revision
from provisioner.catalogs.choice import (
    CatalogOffer,
    Choice,
    Installed,
    NoChoice,
    PackageWish,
    choose,
    list_deprecations,
    newer_not_taken,
    upgrade_step,
)
from provisioner.catalogs.spec_source import selects_catalog
from provisioner.catalogs.values import CatalogBundle, Package
from provisioner.errors import BundleNotOffered, SourceUnavailable
from provisioner.review.checks.bundle.provenance import judge_chosen_bundle
from provisioner.sentences import some
from provisioner.source import needed
from provisioner.values import ChosenBundle, RequirementKind, UpgradeStep
from provisioner.versions import version_of

MOST_NAMES = 5
OfferKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Running:
    """What runs where a source puts its files: a bundle of this package, or why it is none."""

    installed: Installed | None
    step: UpgradeStep = UpgradeStep.FIRST


def bundles_for(request: Request) -> dict[str, ChosenBundle]:
    """By destination the bundles that a request's sources are resolved to: chosen when it is asked first, and kept.

    What the machine asks for leaves a source as it is that is not to be followed. Raises BundleNotOffered, and
    SourceUnavailable while the catalog is not there or not read.
    """
    if request.bundles or not any(source.is_catalog for source in request.bundle_spec.sources):
        return {bundle.destination: bundle for bundle in recorded_bundles(request)}
    last = _earlier_requests(request).first() if request.is_unattended else None
    before = {bundle.destination: bundle for bundle in recorded_bundles(last)} if last else {}
    spec = request.bundle_spec
    is_followed = spec.upgrade_policy is not UpgradePolicy.MANUAL
    found = {}
    for source in spec.sources:
        if source.is_catalog:
            kept = None if is_followed else before.get(source.destination)
            found[source.destination] = kept or bundle_for(request.deployment, source)
    request.bundles = [asdict(choice) for choice in found.values()]
    request.is_for_people = spec.upgrade_policy is UpgradePolicy.REQUEST and is_unasked_upgrade(request)
    # Nothing is updated where another worker holds the request, or chose before this one.
    same = Request.objects.filter(pk=request.pk, claimed_by=request.claimed_by, bundles=[])
    if not same.update(bundles=request.bundles, is_for_people=request.is_for_people):
        raise LostClaim
    return found


def is_unasked_upgrade(request: Request) -> bool:
    """Whether the machine takes a bundle, or another content of one, that nobody asked for and that does not run.

    What takes the place of such a request takes it so, too: a person's request must have been for it, and all since.
    """
    if not request.is_unattended or not request.bundles:
        return False
    before = _earlier_requests(request)
    last, asked = before.first(), before.filter(is_unattended=False).first()
    known = _offer_keys(last) & _offer_keys(asked) if last and asked and not last.is_for_people else set()
    return any(
        offer_key(bundle) not in known and not is_bundle_running(request.deployment, bundle)
        for bundle in recorded_bundles(request)
    )


def _offer_keys(request: Request) -> set[OfferKey]:
    return {offer_key(bundle) for bundle in recorded_bundles(request)}


def recorded_bundles(request: Request) -> list[ChosenBundle]:
    """As they were chosen."""
    return [read_record(bundle) for bundle in request.bundles]


def bundles_as_offered_now(request: Request) -> list[ChosenBundle]:
    """The bundles as they were chosen, with what their catalogs say of them now.

    A bundle stays as it is recorded where its catalog was not read since, is gone, or was not read yet from the source
    that it names now: nobody says anything else of it. So does each where somebody goes back on purpose.
    """
    if request.purpose != Request.Purpose.DEPLOY:
        return recorded_bundles(request)
    sources = {source.destination: source for source in request.bundle_spec.sources if source.is_catalog}
    return [
        _update_from_catalog(request.deployment, bundle, sources[bundle.destination])
        if bundle.destination in sources
        else bundle
        for bundle in recorded_bundles(request)
    ]


def _update_from_catalog(deployment: BundleDeployment, bundle: ChosenBundle, source: SpecSource) -> ChosenBundle:
    catalog = find_catalog(deployment.cluster, bundle.catalog)
    if catalog is None or catalog.edition is None or catalog.edition.digest == bundle.digest:
        return bundle
    package = find_package(catalog, bundle.package)
    now = replace(bundle, digest=catalog.edition.digest, is_withdrawn=True)
    if package is None:
        return now
    now = replace(now, deprecations=list_deprecations(package, bundle.channel, bundle.bundle))
    offered = package.bundles.get(bundle.bundle)
    if offered is None:
        return now
    wish = source.package_wish()
    channels = [channel for name, channel in package.channels.items() if not wish.channels or name in wish.channels]
    running = _find_running(deployment, bundle.destination, [package])
    installed = running.installed
    return replace(
        now,
        is_withdrawn=all(bundle.bundle != entry.name for channel in channels for entry in channel.entries),
        step=upgrade_step(package, [channel.name for channel in channels], offered, installed)
        if installed
        else running.step,
        before=installed.name if installed else "",
        before_version=str(installed.version) if installed else "",
        before_catalog=_catalog_before(deployment, bundle.destination, package),
        needs=offered.needs,
        changed=_changed_words(catalog, package, offered),
    )


def list_new_problems(request: Request) -> tuple[str, ...]:
    """What speaks against the bundles of a request by their catalogs now, and did not when it was last reported."""
    said = {RequirementKind(requirement["kind"]) for requirement in request.requirements}
    known = {
        finding.fingerprint for bundle in recorded_bundles(request) for finding in judge_chosen_bundle(bundle, said)
    }
    found = [finding for bundle in bundles_as_offered_now(request) for finding in judge_chosen_bundle(bundle, said)]
    return tuple(finding.message for finding in found if finding.fingerprint not in known)


def read_record(record: Mapping[str, Any]) -> ChosenBundle:
    """A bundle as a request has it recorded."""
    lists = {name: tuple(record.get(name, ())) for name in ("deprecations", "needs", "passed_over")}
    return ChosenBundle(**{**record, **lists, "step": UpgradeStep(record["step"])})


def offer_key(bundle: ChosenBundle) -> OfferKey:
    """Return what is the same for the same content of the same bundle."""
    return bundle.catalog, bundle.package, bundle.bundle, bundle.version, bundle.release, bundle.content


def _earlier_requests(request: Request) -> QuerySet[Request]:
    """The requests for the same wish whose sources were resolved, the latest first."""
    rows = request.deployment.requests.filter(
        number__lt=request.number, purpose=Request.Purpose.DEPLOY, options_digest=request.options_digest
    )
    return rows.exclude(bundles=[]).order_by("-number")


def bundle_for(deployment: BundleDeployment, source: SpecSource) -> ChosenBundle:
    """The bundle that a source takes now; raises as `bundles_for`."""
    return bundle_with_newer(deployment, source)[0]


def bundle_with_newer(deployment: BundleDeployment, source: SpecSource) -> tuple[ChosenBundle, str]:
    """The same, with what is newer and cannot be taken, and why, in words."""
    wish, where = source.package_wish(), source.where
    catalogs = _read_catalogs(deployment, source)
    packages = {catalog.name: found for catalog in catalogs if (found := find_package(catalog, wish.package))}
    if not packages:
        raise BundleNotOffered(f"{where}: {_explain_no_package(catalogs, wish)}")
    running = _find_running(deployment, source.destination, list(packages.values()))
    offers = [CatalogOffer(catalog.name, packages.get(catalog.name), catalog.priority) for catalog in catalogs]
    choice = choose(wish, offers, running.installed)
    if isinstance(choice, NoChoice):
        is_chart = any(package.is_chart for package in packages.values())
        words = _words_with_remedy(choice, running, is_chart=is_chart)
        raise BundleNotOffered(f"{where}: {_name_catalogs(catalogs)}: {words}")
    package = packages[choice.catalog]
    catalog = next(catalog for catalog in catalogs if catalog.name == choice.catalog)
    if not choice.bundle.can_be_pinned:
        raise BundleNotOffered(f"{where}: {_why_unpinned(catalog, choice)}")
    bundle, edition, installed = choice.bundle, catalog.edition, running.installed
    assert edition is not None
    channel = package.default_channel if package.default_channel in choice.channels else choice.channels[0]
    chosen = ChosenBundle(
        destination=source.destination,
        catalog=catalog.name,
        digest=edition.digest,
        package=package.name,
        channel=channel,
        bundle=bundle.name,
        version=str(bundle.version),
        image=bundle.image,
        release=bundle.release,
        step=_upgrade_step(wish, package, choice, running),
        before=installed.name if installed else "",
        before_version=str(installed.version) if installed else "",
        deprecations=list_deprecations(package, channel, bundle.name),
        needs=bundle.needs,
        changed=_changed_words(catalog, package, bundle),
        url=bundle.url,
        checksum=bundle.checksum,
        is_chart=bundle.is_chart,
        before_catalog=_catalog_before(deployment, source.destination, package),
        is_selected=source.is_selecting,
        priority=choice.priority if source.is_selecting else 0,
        passed_over=choice.passed_over[:MOST_NAMES],
    )
    return chosen, newer_not_taken(wish, package, bundle)


def _why_unpinned(catalog: Catalog, choice: Choice) -> str:
    words = f"catalog {catalog.name} names no image for bundle {choice.bundle.name}, so that nothing can be pinned"
    if not choice.bundle.url:
        return f"{words}; choose another version, or ask its publisher"
    return (
        f"catalog {catalog.name} has no digest of chart {choice.bundle.name}, so that nothing can be pinned. Name the "
        "URL of the chart and its checksum as a source of kind http, or ask its publisher for an index with digests"
    )


def _upgrade_step(wish: PackageWish, package: Package, choice: Choice, running: _Running) -> UpgradeStep:
    if running.installed is None:
        return running.step
    return upgrade_step(package, wish.channels or package.channels, choice.bundle, running.installed)


def _read_catalogs(deployment: BundleDeployment, source: SpecSource) -> list[Catalog]:
    """The catalogs that a source names or selects, by name. Raises SourceUnavailable unless each of them was read: what
    is not known of one could be what is wanted."""
    where = source.where
    if source.is_selecting:
        selector = source.body["selector"]
        listed = catalogs_of(deployment.cluster)
        catalogs = [catalog for catalog in listed if selects_catalog(selector, catalog.name, catalog.labels)]
        if not catalogs:
            words = f"{where}.catalog.selector selects no Catalog of cluster {deployment.cluster.name}"
            raise SourceUnavailable(f"{words}, which has {len(listed)}; label one of them, or change the selector")
    else:
        name = needed(source.body, "name", f"{where}.{source.kind}")
        found = find_catalog(deployment.cluster, name)
        if found is None:
            words = f"Catalog {name} does not exist on cluster {deployment.cluster.name}"
            raise SourceUnavailable(f"{words}; {where} names it")
        catalogs = [found]
    for catalog in catalogs:
        if catalog.edition is None:
            verb, why = "selects" if source.is_selecting else "names", f": {catalog.problem}" if catalog.problem else ""
            raise SourceUnavailable(f"Catalog {catalog.name}, which {where} {verb}, was not read yet{why}")
    return catalogs


def _name_catalogs(catalogs: Sequence[Catalog]) -> str:
    names = some([catalog.name for catalog in catalogs], MOST_NAMES)
    return f"catalog {names}" if len(catalogs) == 1 else f"catalogs {names}"


def _explain_no_package(catalogs: Sequence[Catalog], wish: PackageWish) -> str:
    if len(catalogs) == 1:
        return f"catalog {catalogs[0].name} has no package {wish.package}; {_similar_packages(catalogs[0], wish)}"
    return f"none of the selected {_name_catalogs(catalogs)} has a package {wish.package}"


def _similar_packages(catalog: Catalog, wish: PackageWish) -> str:
    """What there is instead: names that are alike, else how many there are."""
    page = list_packages(catalog, wish.package.split("-")[0], limit=200)
    names = [package.name for package in page.packages] or [
        package.name for package in list_packages(catalog, limit=200).packages
    ]
    alike = get_close_matches(wish.package, names, MOST_NAMES)
    if alike:
        return f"names like it are {some(alike, MOST_NAMES)}"
    assert catalog.edition is not None
    return f"it has {some(names, MOST_NAMES, total=catalog.edition.package_count) or 'no package'}"


def _words_with_remedy(choice: NoChoice, running: _Running, *, is_chart: bool) -> str:
    if running.installed is None or choice.code == "ambiguous":
        return choice.words
    if is_chart:
        return f"{choice.words}. upgradeConstraintPolicy SelfCertified takes a lower version, and reviewers are told"
    return f"{choice.words}. upgradeConstraintPolicy SelfCertified leaves the edges, and reviewers are told"


def _changed_words(catalog: Catalog, package: Package, bundle: CatalogBundle) -> str:
    change = find_content_change(catalog, package.name, bundle.name)
    return f"{change.before} until {change.seen_at:%Y-%m-%d}, {change.after} since" if change else ""


def running_bundle(deployment: BundleDeployment, destination: str) -> ChosenBundle | None:
    """The bundle of a catalog that runs; None where what runs is of no catalog."""
    active = _active_revision(deployment)
    found = recorded_bundles(active.request) if active else []
    return next((bundle for bundle in found if bundle.destination == destination), None)


def is_bundle_running(deployment: BundleDeployment, bundle: ChosenBundle) -> bool:
    """Whether a bundle that was chosen just now runs already, with the same content."""
    runs = running_bundle(deployment, bundle.destination)
    # What was installed by its image is known by its digest: `before` names the bundle that has it.
    if runs is None:
        return bundle.before == bundle.bundle
    is_same = offer_key(runs) == offer_key(bundle)
    # The same content is no news where another one of the selected catalogs offers it.
    return is_same or (bundle.is_selected and offer_key(replace(runs, catalog=bundle.catalog)) == offer_key(bundle))


def _active_revision(deployment: BundleDeployment) -> Revision | None:
    return deployment.revisions.filter(state=Revision.State.ACTIVE).select_related("request").first()


def _find_running(deployment: BundleDeployment, destination: str, packages: Sequence[Package]) -> _Running:
    """The bundle that runs here, by what catalogs have of the package. One that was installed by its image is known by
    its digest."""
    active = _active_revision(deployment)
    if active is None:
        return _Running(None)
    chosen = running_bundle(deployment, destination)
    if chosen is not None and chosen.package != packages[0].name:
        return _Running(None, UpgradeStep.ELSEWHERE)
    if chosen is not None:
        return _Running(Installed(chosen.bundle, version_of(chosen.version), chosen.release))
    digests = {pin["digest"] for pin in active.request.pins if pin.get("destination", "") == destination}
    for package in packages:
        for bundle in package.bundles.values():
            if (bundle.image.partition("@")[2] or bundle.checksum) in digests:
                return _Running(Installed(bundle.name, bundle.version, bundle.release))
    return _Running(None, UpgradeStep.UNKNOWN)


def _catalog_before(deployment: BundleDeployment, destination: str, package: Package) -> str:
    """The catalog that what runs of this package was taken from; "" where that is not known."""
    runs = running_bundle(deployment, destination)
    return runs.catalog if runs is not None and runs.package == package.name else ""
