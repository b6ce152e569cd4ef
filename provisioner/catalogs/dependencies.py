"""Which packages would have to be installed before a bundle, in order. PURE: `Surroundings` reads what is known.

Of each package that is needed the newest bundle in the default channel that satisfies is taken, from the catalog of the
bundle that needs it where that has one. Where several catalogs or packages would do, nothing is chosen: which one is
taken would be chance. Nothing is tried twice: where two bundles need different versions of a package, that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from heapq import nlargest
from typing import Protocol

from semver import Version

from provisioner.catalogs.choice import CatalogOffer, Choice, NoChoice, PackageWish, choose
from provisioner.catalogs.values import CatalogBundle
from provisioner.render.registry.needs import ApiNeed, CompoundNeed, Join, Need, PackageNeed, UnjudgedNeed
from provisioner.sentences import some
from provisioner.versions import VersionRange, precedence, range_of

MOST_STEPS = 20
MAX_DEPTH = 8
MOST_LOOKS = 500
# Of tens of thousands of bundles so many are held against a range that none in the default channel meets.
MOST_EXPLAINED = 1_000


class NeedState(StrEnum):
    """How it stands with a need: met by what runs, asked for, in the plan, not to be met, or not known."""

    MET = "met"
    ASKED = "asked"
    PLANNED = "planned"
    UNMET = "unmet"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """A deployment that follows a package. `version` is what of it runs, None where nothing does yet."""

    deployment: str
    version: Version | None


class Surroundings(Protocol):
    """What is installed, what the cluster serves, and what its catalogs offer. Each is asked for by name."""

    def installed(self, package: str, /) -> Sequence[InstalledPackage]: ...

    def serves(self, api: ApiNeed, /) -> bool | None:
        """None where nobody knows."""

    def offers(self, package: str, /) -> Sequence[CatalogOffer]: ...

    def offers_of_api(self, api: ApiNeed, /) -> Sequence[CatalogOffer]: ...


@dataclass(frozen=True, slots=True)
class PlannedPackage:
    """One package that would come first.

    `needed_by` is the package that needs it, "" for the bundle itself; `after` are those of the plan that it needs;
    `versions` is the range that is asked for, "" for any; `unjudged` what else it needs and nobody judges.
    """

    package: str
    catalog: str
    channel: str
    bundle: str
    version: str
    versions: str
    needed_by: str
    after: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedNeed:
    """A need in words, how it stands, and a sentence that says why."""

    need: str
    state: NeedState
    why: str


@dataclass(frozen=True, slots=True)
class DependencyPlan:
    """What a bundle needs, and the packages that would come first, in this order."""

    needs: tuple[JudgedNeed, ...]
    steps: tuple[PlannedPackage, ...]


def plan_dependencies(
    needs: Iterable[Need], known: Surroundings, *, package: str = "", catalog: str = ""
) -> DependencyPlan:
    """The plan for a bundle of this package and catalog, each "" where that is not known."""
    planner = _Planner(known)
    if package:
        planner.path.append(_OnPath(package, None))
    judged, words = list[JudgedNeed](), ""
    try:
        for need in needs:
            words = str(need)
            found = planner.settle(need, catalog, "")
            judged.append(JudgedNeed(words, found.state, found.why))
        judged.extend(planner.barred_steps())
    except LooksSpent as exc:
        return DependencyPlan((JudgedNeed(words, NeedState.UNKNOWN, f"{exc}, so nothing is planned"),), ())
    return DependencyPlan(tuple(judged), tuple(planner.steps.values()))


class LooksSpent(Exception):
    """Needs lead to ever more needs, or looking takes too long. Says which, as a phrase."""


@dataclass(frozen=True, slots=True)
class _Settled:
    """`packages` are those of the plan by which it is met."""

    state: NeedState
    why: str
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _OnPath:
    package: str
    bundle: CatalogBundle | None


@dataclass(slots=True)
class _Planner:
    known: Surroundings
    steps: dict[str, PlannedPackage] = field(default_factory=dict)
    chosen: dict[str, CatalogBundle] = field(default_factory=dict)
    path: list[_OnPath] = field(default_factory=list)
    barred: list[tuple[CompoundNeed, str]] = field(default_factory=list)
    looks: int = 0

    def settle(self, need: Need, home: str, by: str) -> _Settled:
        """How it stands with a need of the bundle of package `by` of the catalog `home`; what is missing is planned."""
        self._count_look()
        match need:
            case PackageNeed():
                return self._settle_package(need, home, by)
            case ApiNeed():
                return self._settle_api(need, home, by)
            case CompoundNeed():
                return self._settle_compound(need, home, by)
            case UnjudgedNeed():
                return _Settled(NeedState.UNKNOWN, need.why)

    def _count_look(self) -> None:
        self.looks += 1
        if self.looks > MOST_LOOKS:
            raise LooksSpent(f"more than {MOST_LOOKS} needs would have to be looked at")

    def _settle_package(self, need: PackageNeed, home: str, by: str) -> _Settled:
        there = self.known.installed(need.package)
        stands = _judge_installed(need, there) if there else None
        if stands is not None and stands.state is NeedState.MET:
            return stands
        if circle := self._circle(need.package):
            return _Settled(NeedState.UNMET, circle)
        if stands is not None:
            return stands
        if (bundle := self.chosen.get(need.package)) is not None:
            step = self.steps[need.package]
            if need.versions is None or need.versions.takes(bundle.version, bundle.release):
                self.steps[need.package] = replace(step, versions=_join_ranges(step.versions, str(need.versions or "")))
                return _Settled(NeedState.PLANNED, _planned_words(step), (need.package,))
            words = (
                f"{step.needed_by or 'this bundle'} needs it too, and gets {bundle.version}: no version does for both"
            )
            return _Settled(NeedState.UNMET, words)
        offers = [_default_channel(offer) for offer in self.known.offers(need.package)]
        found = _choose(PackageWish(need.package, versions=need.versions), offers, home)
        if isinstance(found, NoChoice):
            said = found.words if found.code == "ambiguous" else _explain_none(need, self.known.offers(need.package))
            return _Settled(NeedState.UNMET, said)
        return self._plan(need.package, found, need.versions, by)

    def _settle_api(self, need: ApiNeed, home: str, by: str) -> _Settled:
        served = self.known.serves(need)
        if served:
            return _Settled(NeedState.MET, "the cluster serves it")
        for entry in self.path:
            if entry.bundle is not None and need.key in entry.bundle.apis:
                return _Settled(NeedState.MET, f"{entry.package} brings it itself")
        for package, bundle in self.chosen.items():
            if need.key in bundle.apis:
                return _Settled(NeedState.PLANNED, _planned_words(self.steps[package]), (package,))
        if served is None:
            return _Settled(NeedState.UNKNOWN, "whether the cluster serves it is not known")
        bringers = _list_bringers(need, self.known.offers_of_api(need), home)
        if not bringers:
            return _Settled(NeedState.UNMET, "no default channel of a catalog that you may read offers it")
        if len(bringers) > 1:
            words = f"several packages bring it: {some(list(bringers))}; create a deployment of one of them yourself"
            return _Settled(NeedState.UNMET, words)
        ((package, offers),) = bringers.items()
        return self._settle_bringer(package, offers, home, by)

    def _settle_bringer(self, package: str, offers: Sequence[CatalogOffer], home: str, by: str) -> _Settled:
        """How it stands with the only package that brings an API which the cluster does not serve."""
        if circle := self._circle(package):
            return _Settled(NeedState.UNMET, circle)
        if there := self.known.installed(package):
            return _judge_bringer(package, there)
        if package in self.chosen:
            words = f"{package} {self.chosen[package].version}, which would come first, does not bring it"
            return _Settled(NeedState.UNMET, words)
        found = _choose(PackageWish(package), offers, home)
        if isinstance(found, NoChoice):
            return _Settled(NeedState.UNMET, found.words)
        # A deployment takes the newest one, unless its spec names the one that brings the API.
        all_of_it = [_default_channel(offer) for offer in self.known.offers(package) if offer.catalog == found.catalog]
        newest = choose(PackageWish(package), all_of_it)
        is_newest = isinstance(newest, Choice) and newest.bundle.name == found.bundle.name
        return self._plan(package, found, None if is_newest else range_of(found.bundle.pin), by)

    def _settle_compound(self, need: CompoundNeed, home: str, by: str) -> _Settled:
        if need.join is Join.NONE:
            there = [str(member) for member in need.members if self._is_met(member)]
            if there:
                return _Settled(NeedState.UNMET, f"it must not be there: {some(there)}")
            self.barred.append((need, by))
            return _Settled(NeedState.MET, "none of it is there")
        if need.join is Join.ALL:
            return _joined([self.settle(member, home, by) for member in need.members])
        if any(self._is_met(member) for member in need.members):
            return _Settled(NeedState.MET, "one of them is there")
        tried = []
        for member in need.members:
            before = dict(self.steps), dict(self.chosen), list(self.barred)
            found = self.settle(member, home, by)
            if found.state not in (NeedState.UNMET, NeedState.UNKNOWN):
                return found
            self.steps, self.chosen, self.barred = before
            tried.append((str(member), found))
        state = NeedState.UNKNOWN if any(one.state is NeedState.UNKNOWN for _, one in tried) else NeedState.UNMET
        return _Settled(state, "; ".join(f"{words}: {one.why}" for words, one in tried[:MAX_DEPTH]))

    def _is_met(self, need: Need) -> bool:
        """Whether a need is met by what runs, with nothing planned for it."""
        self._count_look()
        match need:
            case PackageNeed():
                there = self.known.installed(need.package)
                return bool(there) and _judge_installed(need, there).state is NeedState.MET
            case ApiNeed():
                return bool(self.known.serves(need))
            case CompoundNeed():
                met = [self._is_met(member) for member in need.members]
                return {Join.ALL: all(met), Join.ANY: any(met), Join.NONE: not any(met)}[need.join]
            case UnjudgedNeed():
                return False

    def _plan(self, package: str, choice: Choice, versions: VersionRange | None, by: str) -> _Settled:
        """Plan a bundle, and before it what that needs; nothing of both where it cannot have that."""
        bundle = choice.bundle
        words = f"{package} {bundle.version} of catalog {choice.catalog}"
        if not bundle.can_be_pinned:
            return _Settled(NeedState.UNMET, f"{words} names no image, so that nothing can be pinned")
        if len(self.steps) >= MOST_STEPS or len(self.path) >= MAX_DEPTH:
            most = f"{MOST_STEPS} requests" if len(self.steps) >= MOST_STEPS else f"{MAX_DEPTH} levels"
            return _Settled(NeedState.UNMET, f"{words} would do, but a plan has at most {most}")
        before = dict(self.steps), dict(self.chosen), list(self.barred)
        after, unjudged = list[str](), list[str]()
        self.path.append(_OnPath(package, bundle))
        for need in bundle.other_needs:
            found = self.settle(need, choice.catalog, package)
            if found.state is NeedState.UNMET:
                self.path.pop()
                self.steps, self.chosen, self.barred = before
                return _Settled(NeedState.UNMET, f"{words} would do, but it needs {need}: {found.why}")
            if found.state is NeedState.UNKNOWN:
                unjudged.append(f"{need}: {found.why}")
            after += found.packages
        self.path.pop()
        step = PlannedPackage(
            package=package,
            catalog=choice.catalog,
            channel=choice.channels[0],
            bundle=bundle.name,
            version=str(bundle.version),
            versions=str(versions or ""),
            needed_by=by,
            after=tuple(dict.fromkeys(after)),
            unjudged=tuple(unjudged),
        )
        self.chosen[package], self.steps[package] = bundle, step
        return _Settled(NeedState.PLANNED, _planned_words(step), (package,))

    def _circle(self, package: str) -> str:
        """The words for a package that is needed by what it needs; "" where it is not."""
        names = [entry.package for entry in self.path]
        if package not in names:
            return ""
        way = " needs ".join([*names[names.index(package) :], package])
        return f"they need each other in a circle: {way}"

    def barred_steps(self) -> Iterator[JudgedNeed]:
        """What of the plan another bundle must not have beside it."""
        for need, by in self.barred:
            for package in dict.fromkeys(name for member in need.members for name in self._list_bringing(member)):
                words = f"{by or 'this bundle'} must not have it, and {_planned_words(self.steps[package])}"
                yield JudgedNeed(str(need), NeedState.UNMET, words)

    def _list_bringing(self, need: Need) -> list[str]:
        """The packages of the plan by which a need would be met; none where it would not be."""
        match need:
            case PackageNeed():
                bundle, versions = self.chosen.get(need.package), need.versions
                is_taken = bundle and (versions is None or versions.takes(bundle.version, bundle.release))
                return [need.package] if is_taken else []
            case ApiNeed():
                return [package for package, bundle in self.chosen.items() if need.key in bundle.apis]
            case CompoundNeed(join=Join.ALL | Join.ANY):
                found = [self._list_bringing(member) for member in need.members]
                parts = zip(need.members, found, strict=True)
                is_whole = need.join is Join.ANY or all(names or self._is_met(member) for member, names in parts)
                return [name for names in found for name in names] if is_whole else []
        return []


def _judge_installed(need: PackageNeed, there: Sequence[InstalledPackage]) -> _Settled:
    runs = [(one.deployment, one.version) for one in there if one.version is not None]
    for deployment, version in runs:
        if need.versions is None or version in need.versions:
            return _Settled(NeedState.MET, f"deployment {deployment} runs {version}")
    if runs:
        deployment, version = runs[0]
        words = f"deployment {deployment} runs {version}: change the version that it takes"
        return _Settled(NeedState.UNMET, words)
    return _Settled(NeedState.ASKED, f"deployment {there[0].deployment} asks for it, and nothing of it runs yet")


def _judge_bringer(package: str, there: Sequence[InstalledPackage]) -> _Settled:
    """Of a package that brings an API which the cluster does not serve."""
    waiting = [one.deployment for one in there if one.version is None]
    if waiting:
        words = f"deployment {waiting[0]} asks for {package}, which brings it, and nothing of that runs yet"
        return _Settled(NeedState.ASKED, words)
    words = f"deployment {there[0].deployment} runs {package} {there[0].version}, which does not bring it"
    return _Settled(NeedState.UNMET, words)


def _joined(found: Sequence[_Settled]) -> _Settled:
    """All of them: the worst one says how it stands."""
    order = (NeedState.UNMET, NeedState.UNKNOWN, NeedState.PLANNED, NeedState.ASKED, NeedState.MET)
    state = min((one.state for one in found), key=order.index)
    words = "; ".join(dict.fromkeys(one.why for one in found if one.state is state))
    return _Settled(state, words, tuple(name for one in found for name in one.packages))


def _join_ranges(first: str, second: str) -> str:
    """Both; the first where no range is both of them."""
    if not (first and second) or first == second:
        return first or second
    return first if "||" in first + second else f"{first} {second}"


def _planned_words(step: PlannedPackage) -> str:
    return f"{step.package} {step.version} of catalog {step.catalog} would come first"


def _default_channel(offer: CatalogOffer) -> CatalogOffer:
    """What a catalog offers of a package in its default channel alone; no chart, which no bundle means."""
    package = offer.package
    if package is None or package.is_chart:
        return replace(offer, package=None)
    channel = package.channels.get(package.default_channel)
    channels = {channel.name: channel} if channel else {}
    names = {entry.name for entry in channel.entries} if channel else set()
    bundles = {name: bundle for name, bundle in package.bundles.items() if name in names}
    return replace(offer, package=replace(package, channels=channels, bundles=bundles))


def _list_bringers(need: ApiNeed, offers: Iterable[CatalogOffer], home: str) -> dict[str, list[CatalogOffer]]:
    """The packages that bring an API in their default channels: those of the catalog of who needs it, else all."""
    found: dict[str, list[CatalogOffer]] = {}
    for offer in map(_default_channel, offers):
        package = offer.package
        if package is not None and any(need.key in bundle.apis for bundle in package.bundles.values()):
            found.setdefault(package.name, []).append(_with_api(offer, need))
    own = {name: listed for name, listed in found.items() if any(offer.catalog == home for offer in listed)}
    return dict(sorted((own or found).items()))


def _with_api(offer: CatalogOffer, need: ApiNeed) -> CatalogOffer:
    if offer.package is None:
        return offer
    bundles = {name: bundle for name, bundle in offer.package.bundles.items() if need.key in bundle.apis}
    return replace(offer, package=replace(offer.package, bundles=bundles))


def _choose(wish: PackageWish, offers: Sequence[CatalogOffer], home: str) -> Choice | NoChoice:
    """From the catalog of who needs it, where that has what is wanted; else from the others."""
    own = choose(wish, [offer for offer in offers if offer.catalog == home])
    return own if isinstance(own, Choice) else choose(wish, offers)


def _explain_none(need: PackageNeed, offers: Sequence[CatalogOffer]) -> str:
    """That no catalog has it, what the newest is that one has, and which channel beside the default one has it."""
    found = list[tuple[CatalogBundle, str, str]]()
    for offer in offers:
        for name, channel in offer.package.channels.items() if offer.package else ():
            for entry in channel.entries:
                bundle = offer.package.bundles.get(entry.name) if offer.package else None
                if bundle is not None and not bundle.is_chart:
                    found.append((bundle, offer.catalog, name))
    newest = nlargest(MOST_EXPLAINED, found, key=lambda one: precedence(one[0].version))
    if not newest:
        return f"no catalog that you may read offers package {need.package}"
    fitting = [one for one in newest if need.versions is None or one[0].version in need.versions]
    bundle, catalog, channel_name = max(fitting or newest, key=lambda one: one[0].rank)
    if fitting:
        words = f"{bundle.version} is in channel {channel_name} of catalog {catalog}, which is not its default channel"
        return f"{words}: create a deployment that names the channel yourself"
    words = f"no catalog that you may read offers {str(need).removeprefix('package ')}"
    return f"{words}; the newest is {bundle.version} in catalog {catalog}"
