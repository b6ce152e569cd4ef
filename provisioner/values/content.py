"""What a bundle is on its way from an archive to sorted objects with a digest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from provisioner.values.made_values import MadeUp
from provisioner.values.objects import JsonObject, ObjectRef
from provisioner.values.plans import Hook, HookMoment


@dataclass(frozen=True, slots=True)
class Archive:
    """Bytes to unpack, recognised by what they are; `name` names a file that is none (a single YAML file)."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Tree:
    """An unpacked bundle in memory: file contents by path (relative, `/`-separated, never climbing)."""

    files: Mapping[str, bytes]


# The kind of the pin of a chart that another one needs: `reference` is REPOSITORY/NAME:VERSION.
DEPENDENCY = "dependency"


@dataclass(frozen=True, slots=True)
class Pin:
    """What a source was resolved to: `digest` is `sha256:<hex>`, or for git the commit's 40 hex digits.

    `kind` is that of the source, ours or a plug-in's, or DEPENDENCY. `reference` is what was asked for, as people wrote
    it, without credentials. Whoever shows it masks it: its path may hold a key.
    """

    kind: str
    reference: str
    digest: str
    destination: str = ""


class Course(StrEnum):
    """Which way a reference moved: along its history, back, to a commit that does not follow, or nobody could tell."""

    FORWARD = "forward"
    BACKWARD = "backward"
    ASIDE = "aside"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class EarlierCommit:
    """What a git source was resolved to earlier, by what `since` names in words.

    `is_followed`: by the same branch or tag of the same repository, which is expected to move along its history.
    """

    commit: str
    since: str
    is_followed: bool


@dataclass(frozen=True, slots=True)
class SourceMove:
    """A source that was resolved to `before` earlier, by what `since` names in words, and to `after` now.

    `why` says why the course is unknown.
    """

    reference: str
    before: str
    after: str
    since: str
    course: Course
    why: str = ""


@dataclass(frozen=True, slots=True)
class EarlierPin:
    """What a dependency of a chart was resolved to earlier, by what `since` names in words."""

    reference: str
    digest: str
    since: str


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    """The version that the bundle of the same sources said it had, by what `since` names in words.

    `has_releases` where build metadata is the release of a version, as in operator bundles; elsewhere it has no order.
    """

    version: str
    since: str
    has_releases: bool = False


class UpgradeStep(StrEnum):
    """How a bundle that a catalog offers stands to what runs, by the edges of the catalog, or the order of charts."""

    # Nothing runs here yet.
    FIRST = "first"
    SAME = "same"
    FOLLOWS = "follows"
    # No edge leads there; of a chart, it is not higher.
    LEAVES = "leaves"
    # What runs is another package.
    ELSEWHERE = "elsewhere"
    # What runs is of no catalog, so that nobody can tell.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ChosenBundle:
    """The bundle of a catalog that the source of `destination` was resolved to, and what speaks against it.

    `digest` is the catalog's. The bundle is fetched as an `image`, or as the chart at `url` that hashes to `checksum`.
    `before` and `before_version` are the bundle that runs, "" where none does. `deprecations` are what its publisher
    says of the package, the channel and the bundle, `needs` the kinds of constraints that nobody resolves, `changed`
    says how this version came to mean something else. `is_chart`: its versions follow each other by their order.
    `is_withdrawn`: its catalog offered it when it was chosen, and does so no longer. `is_selected`: the source selects
    among catalogs, `priority` is that of the one that was taken, and `passed_over` are others that had what is wanted,
    in words. `before_catalog` is the catalog that what runs was taken from.
    """

    destination: str
    catalog: str
    digest: str
    package: str
    channel: str
    bundle: str
    version: str
    image: str
    release: str = ""
    before: str = ""
    before_version: str = ""
    step: UpgradeStep = UpgradeStep.FIRST
    deprecations: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    changed: str = ""
    url: str = ""
    checksum: str = ""
    is_chart: bool = False
    is_withdrawn: bool = False
    before_catalog: str = ""
    is_selected: bool = False
    priority: int = 0
    passed_over: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """What it stands for, as exactly as the catalog says it."""
        return self.image or self.checksum


@dataclass(frozen=True, slots=True)
class SourceHistory:
    """How what the sources name now stands to what they named earlier; empty where nobody can have expected more."""

    moves: tuple[SourceMove, ...] = ()
    versions: tuple[EarlierVersion, ...] = ()
    bundles: tuple[ChosenBundle, ...] = ()
    dependencies: tuple[EarlierPin, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """One rendered object. `body` is canonical (see render.canonical), `file` is where in the bundle it stands.

    `hook` says when it runs where it is no object that stays; None for all others.
    """

    body: JsonObject
    file: str = ""
    hook: Hook | None = None
    _ref: ObjectRef | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def ref(self) -> ObjectRef:
        """Read from the body once: a report of 500 objects asks for it 160,000 times."""
        if self._ref is None:
            object.__setattr__(self, "_ref", ObjectRef.of(self.body))
        assert self._ref is not None
        return self._ref


@dataclass(frozen=True, slots=True)
class UnusedFiles:
    """Files of the sources that the format did not use: how many, and how many of them could hold objects.

    `paths` are the first of them as they lie in the tree, those that could hold objects (YAML, JSON) before all others.
    """

    count: int = 0
    readable_count: int = 0
    paths: tuple[str, ...] = ()


class RepeatEffect(StrEnum):
    """What it means that a key is there twice: the values are equal, or the later one counts, which is filled where the
    earlier one is empty, or empty where that is filled."""

    EQUAL = "equal"
    FILLED = "filled"
    EMPTIED = "emptied"


@dataclass(frozen=True, order=True, slots=True)
class RepeatedKey:
    """A key of one mapping that is on two lines of a file, of a chart's template of what that renders.

    `first_column` and `column` are 0 where the lines tell the two apart.
    """

    file: str
    first: int
    line: int
    path: str
    effect: RepeatEffect
    first_column: int = 0
    column: int = 0

    @property
    def places(self) -> str:
        """Where the two are in the file, in words."""
        if self.column:
            return f"line {self.line}, columns {self.first_column} and {self.column}"
        return f"lines {self.first} and {self.line}"


class RequirementKind(StrEnum):
    """What a bundle can ask of its cluster: a version, another package, an API, a constraint of OLM's own, or fields
    that Kubernetes does not have."""

    KUBERNETES = "kubernetes"
    OPENSHIFT = "openshift"
    PACKAGE = "package"
    API = "api"
    CONSTRAINT = "constraint"
    FIELD = "field"


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a bundle asks of its cluster beyond its own objects, in the words of the bundle.

    `name` is a package's name, an API's kind, what a constraint is made of, or the object with fields; `version` is the
    lowest version of Kubernetes, the highest of OpenShift, a package's range, an API's version, a constraint's message,
    or the paths of the fields. `constraint` is all of a constraint of OLM as JSON, "" where it is too long to be kept:
    it says no more to whoever compares two bundles.
    """

    kind: RequirementKind
    name: str = ""
    group: str = ""
    version: str = ""
    constraint: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Lookup:
    """An object of the cluster that a chart was told of when it was rendered.

    `digest` is of what it was told, of a Secret of its keys and type alone, "" where the object did not exist; `copies`
    are the Secrets of the content that have values of this one, as namespace/name or as the name alone, and `keys` the
    same with the key of each value. `compared` says where the chart's templates compare such a value with something.
    `answer` is what it was told, with marks in place of the values of a Secret; a content that was stored has none.
    """

    ref: ObjectRef
    digest: str
    copies: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    answer: JsonObject | None = field(default=None, repr=False, compare=False)
    compared: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class PatchedObject:
    """An object that an entry of `spec.config` changed, as it is called since, with the first fields that differ; none
    where it `is_deleted`."""

    ref: ObjectRef
    paths: tuple[str, ...]
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class PatchResult:
    """What an entry of `spec.config`, such as `patches[0]` or `namespace`, did to the rendered objects.

    `count` is how many objects it was for, 0 where it hit nothing; `objects` are the first that it changed. `near` are
    objects of the bundle that are called nearly what a patch asks for that hit nothing.
    """

    entry: str
    count: int
    objects: tuple[PatchedObject, ...]
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """What a request is about: the rendered manifests, sorted, its hooks, and the digest over both
    (render.content_digest).

    `manifests` are the objects that stay, `hooks` those that run at a moment (`with_hooks`). `pins`, `unused` and
    `requirements` say where they came from, what came with them and what their bundle asks of its cluster; `values`
    what a chart was given, as JSON texts by path ("image.tag"), its own included and without credentials, None where
    nobody knows; `spec_values` the paths of those that the spec sets, as far as is known; `version` what the bundle
    says of itself, "" where its format has none; `lookups` what a chart was told of the cluster's objects;
    `repeated` which keys were there twice in its files; `patches` what `spec.config` changed in the rendered objects;
    `made_up` what the chart made up, without the values where the content was stored; `engine` the version of the Helm
    that rendered the chart, such as v4.2.3, "" where none did or nobody knows; `helm_3_differs` the objects that Helm 3
    renders otherwise, None where nobody knows; `suggested_namespace` where the
    bundle would be installed, "" where it does not say or nobody knows any more. The digest does not cover these.
    `salt` is what the digest is keyed with, b"" where it is not.
    """

    manifests: tuple[Manifest, ...]
    install_namespace: str
    service_account: str
    pins: tuple[Pin, ...]
    digest: str
    unused: UnusedFiles = UnusedFiles()
    requirements: tuple[Requirement, ...] = ()
    hooks: tuple[Manifest, ...] = ()
    values: Mapping[str, str] | None = None
    version: str = ""
    lookups: tuple[Lookup, ...] = ()
    suggested_namespace: str = field(default="", compare=False)
    spec_values: frozenset[str] = frozenset()
    repeated: tuple[RepeatedKey, ...] = ()
    patches: tuple[PatchResult, ...] = ()
    salt: bytes = field(default=b"", repr=False, compare=False)
    made_up: MadeUp = field(default_factory=MadeUp, compare=False)
    engine: str = ""
    helm_3_differs: tuple[ObjectRef, ...] | None = None

    @property
    def everything(self) -> tuple[Manifest, ...]:
        """What the digest is over: the manifests, then the hooks."""
        return (*self.manifests, *self.hooks)

    def hooks_at(self, moments: Collection[HookMoment]) -> tuple[Manifest, ...]:
        """The hooks that run at one of these moments, each with no other moment than these."""
        known = [replace(hook, hook=hook.hook.only(moments)) for hook in self.hooks if hook.hook]
        return tuple(one for one in known if one.hook and one.hook.moments)

    def with_hooks(self, moments: Collection[HookMoment]) -> Content:
        """With those hooks among the manifests, and beside them only those that run at none of the moments."""
        running = self.hooks_at(moments)
        others = tuple(hook for hook in self.hooks if hook.ref.identity not in {it.ref.identity for it in running})
        return replace(self, manifests=(*self.manifests, *running), hooks=others)
