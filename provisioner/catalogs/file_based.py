"""Reads a file-based catalog (operator-framework, `olm.package`, `olm.channel`, `olm.bundle`, `olm.deprecations`).

Only one document is held at a time, and of each only what choosing a version needs: bundles carry their CRDs and icons
along, some hundred megabytes in all.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from provisioner.catalogs.documents import documents_of
from provisioner.catalogs.edges import list_contradictions
from provisioner.catalogs.presentation import PresentationShelf, operator_kubernetes
from provisioner.catalogs.values import (
    Catalog,
    CatalogBundle,
    CatalogProblem,
    Channel,
    ChannelEntry,
    Deprecation,
    Package,
)
from provisioner.errors import BadBundle, BundleTooLarge, InvalidManifest, InvalidRange
from provisioner.render import YamlLimits, YamlMeter, load_documents
from provisioner.render.registry.needs import API, CONSTRAINT, MAX_CHARACTERS, PACKAGE
from provisioner.sentences import number
from provisioner.versions import is_release, range_of, version_of

KIND = "ClusterServiceVersion"
# No object of a cluster is larger.
MAX_OBJECT_BYTES = 2 * 1024 * 1024
MOST_OBJECTS = 500
MAX_NODES = 200_000


def read_operator(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields that olm.csv.metadata has; none where the bundle says nothing that can be read."""
    listed = document.get("properties")
    properties = [item for item in (listed if isinstance(listed, list) else []) if isinstance(item, dict)]
    for prop in properties:
        if prop.get("type") == "olm.csv.metadata" and isinstance(prop.get("value"), dict):
            return dict(prop["value"])
    carried = [prop.get("value") for prop in properties if prop.get("type") == "olm.bundle.object"]
    meter = YamlMeter(YamlLimits(max_file_bytes=MAX_OBJECT_BYTES, max_nodes=MAX_NODES))
    for value in carried[:MOST_OBJECTS]:
        data = value.get("data") if isinstance(value, dict) else None
        if isinstance(data, str) and len(data) <= MAX_OBJECT_BYTES * 2:
            for operator in _decode_operators(data, meter):
                meta, spec = operator.get("metadata"), operator.get("spec")
                annotations = meta.get("annotations") if isinstance(meta, dict) else None
                return {**(spec if isinstance(spec, dict) else {}), "annotations": annotations}
    return {}


def _decode_operators(data: str, meter: YamlMeter) -> Iterator[Mapping[str, Any]]:
    """The ClusterServiceVersions among the documents of one manifest."""
    try:
        text = base64.b64decode(data, validate=True)
        if KIND.encode() not in text:
            return
        values = [document.value for document in load_documents(text, name="olm.bundle.object", meter=meter)]
    except (binascii.Error, ValueError, BadBundle):
        return
    yield from (blob for blob in values if isinstance(blob, dict) and blob.get("kind") == KIND)


# Constraints that one bundle places on others: OLM v1 refuses such bundles, and so does whoever chooses here.
NEEDS = (PACKAGE, API, CONSTRAINT)
MAX_TEXT = 4096
MAX_NAME = 253
MAX_SHOWN = 80
MAX_WORDS = 1_000


@dataclass(frozen=True, slots=True)
class CatalogLimits:
    """How much a catalog may be. The largest public one has some 5,000 bundles and 300 MB, each some 1,000 values.

    `max_kept_bytes` bounds what stays in memory: names, references, ranges and short texts, each with some overhead.
    """

    max_bytes: int = 1024 * 1024 * 1024
    max_document_bytes: int = 32 * 1024 * 1024
    max_documents: int = 200_000
    max_document_nodes: int = 200_000
    max_nodes: int = 40_000_000
    max_entries: int = 200_000
    max_package_entries: int = 50_000
    max_channel_entries: int = 1_000
    max_kept_bytes: int = 128 * 1024 * 1024
    max_problems: int = 1_000


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """A file of a catalog: its name for messages, and how it is opened."""

    name: str
    open: Callable[[], BinaryIO]


class _Unusable(Exception):
    """Why one document, or a part of it, is left out."""


@dataclass(slots=True)
class _Draft:
    """A package while its documents come in, in any order."""

    package: Package | None = None
    channels: dict[str, Channel] = field(default_factory=dict)
    bundles: dict[str, CatalogBundle] = field(default_factory=dict)
    deprecations: list[Deprecation] = field(default_factory=list)
    unusable_channels: dict[str, str] = field(default_factory=dict)
    unusable_bundles: dict[str, str] = field(default_factory=dict)
    entries: int = 0


def read_catalog(
    files: Iterable[CatalogFile], *, limits: CatalogLimits | None = None, shelf: PresentationShelf | None = None
) -> Catalog:
    """All packages of the files, in the order of their names; what they say of themselves is put on the shelf.

    A document that cannot be used is a problem of the catalog, not an error. Raises InvalidManifest where no package
    is found, as in a page that a server shows while it is down; BundleTooLarge past a limit; and OSError where a file
    cannot be read.
    """
    reader = _Reader(limits or CatalogLimits(), shelf)
    for file in files:
        with file.open() as stream:
            reader.read(file.name, stream)
    return reader.catalog()


class _Reader:
    def __init__(self, limits: CatalogLimits, shelf: PresentationShelf | None):
        self._limits = limits
        self._shelf = shelf
        self._drafts: dict[str, _Draft] = {}
        self._problems: list[CatalogProblem] = []
        self._undescribed: set[str] = set()
        self._unsaid = self._bytes = self._nodes = self._documents = self._entries = self._kept = 0
        self._take = {
            "olm.package": self._package,
            "olm.channel": self._channel,
            "olm.bundle": self._bundle,
            "olm.deprecations": self._deprecations,
        }

    def read(self, name: str, stream: BinaryIO) -> None:
        for text, line in documents_of(stream, name=name, max_bytes=self._limits.max_document_bytes):
            self._bytes += len(text)
            self._documents += 1
            if self._bytes > self._limits.max_bytes:
                raise BundleTooLarge(f"{name}: the catalog has more than {self._limits.max_bytes} bytes (max_bytes)")
            if self._documents > self._limits.max_documents:
                raise BundleTooLarge(f"{name}: more than {self._limits.max_documents} documents (max_documents)")
            where = f"{name}:{line}"
            try:
                values = self._values(text, where)
            except InvalidManifest as exc:
                self._complain(where, str(exc).removeprefix(f"{where}:"))
                continue
            for value in values:
                place = _describe_place(value, where)
                try:
                    if not isinstance(value, dict) or not isinstance(value.get("schema"), str):
                        raise _Unusable("no document of a catalog: it has no schema")
                    take = self._take.get(value["schema"])
                    if take is not None:  # anybody may add documents of a schema of their own
                        take(value, place)
                except _Unusable as exc:
                    self._complain(place, str(exc))

    def _values(self, text: bytes, where: str) -> list[Any]:
        size = self._limits.max_document_bytes
        most = self._limits.max_document_nodes
        meter = YamlMeter(YamlLimits(max_file_bytes=size + 1, max_characters=size + 1, max_nodes=most))
        try:
            return [document.value for document in load_documents(text, name=where, meter=meter)]
        finally:  # what cannot be read costs as much
            self._nodes += meter.nodes
            if self._nodes > self._limits.max_nodes:
                raise BundleTooLarge(f"{where}: the catalog has more than {self._limits.max_nodes} values (max_nodes)")

    def _complain(self, where: str, words: str) -> None:
        if len(self._problems) < self._limits.max_problems:
            self._problems.append(CatalogProblem(where, _cut_words(words)))
        else:
            self._unsaid += 1

    def _draft(self, value: dict[str, Any], key: str) -> _Draft:
        return self._drafts.setdefault(_read_name(value, key), _Draft())

    def _package(self, value: dict[str, Any], _where: str) -> None:
        name = _read_name(value, "name")
        try:
            package = Package(
                name, _read_text(value, "defaultChannel"), _read_text(value, "description", most=MAX_TEXT)
            )
        except _Unusable:
            self._undescribed.add(name)
            raise
        draft = self._draft(value, "name")
        if draft.package is not None:
            raise _Unusable(f"package {package.name} is there twice; the first one counts")
        draft.package = package
        if self._shelf:
            self._shelf.put_package(package.name, value)

    def _channel(self, value: dict[str, Any], where: str) -> None:
        draft, name = self._draft(value, "package"), _read_name(value, "name")
        if name in draft.channels:
            raise _Unusable(f"channel {name} of package {value['package']} is there twice; the first one counts")
        try:
            channel = self._channel_of(value, draft, where)
        except _Unusable as exc:
            self._leave_out(draft.unusable_channels, name, str(exc), where)
            raise
        draft.channels[name] = channel
        self._keep(where, sum(_estimate_size(entry.name, entry.replaces, *entry.skips) for entry in channel.entries))

    def _channel_of(self, value: dict[str, Any], draft: _Draft, where: str) -> Channel:
        name = value["name"]
        entries: dict[str, ChannelEntry] = {}
        draft.entries += len(_read_list(value, "entries"))
        if draft.entries > self._limits.max_package_entries:
            most = self._limits.max_package_entries
            raise _Unusable(f"package {value['package']} has more than {most} entries; channel {name} is left out")
        listed = _read_list(value, "entries")
        if len(listed) > self._limits.max_channel_entries:
            most = self._limits.max_channel_entries
            words = f"channel {name} of package {value['package']} has {len(listed)} entries, at most {most}"
            raise _Unusable(f"{words}, so it is left out")
        for item in listed:
            self._entries += 1
            if self._entries > self._limits.max_entries:
                raise BundleTooLarge(f"{where}: more than {self._limits.max_entries} channel entries (max_entries)")
            entry = self._entry(item, f"{where}, channel {name}")
            if entry is not None and entries.setdefault(entry.name, entry) is not entry:
                self._complain(where, f"channel {name} has {entry.name} twice; the first one counts")
        return Channel(name, tuple(entries.values()))

    def _leave_out(self, unusable: dict[str, str], name: str, why: str, where: str) -> None:
        if name not in unusable:
            self._keep(where, _estimate_size(name, _cut_words(why)))
            unusable[name] = _cut_words(why)

    def _entry(self, value: Any, where: str) -> ChannelEntry | None:
        """An entry without a name is left out; one whose range cannot be read follows nothing by it."""
        try:
            if not isinstance(value, dict):
                raise _Unusable("an entry that is no mapping")
            name = _read_name(value, "name")
            skips = _read_list(value, "skips")
            if any(not isinstance(skip, str) or len(skip) > MAX_NAME for skip in skips):
                raise _Unusable("skips holds something that is no name of a bundle")
            self._entries += len(skips)
            replaced = _read_text(value, "replaces")
        except _Unusable as exc:
            self._complain(where, str(exc))
            return None
        words, follows = value.get("skipRange") or "", None
        try:
            follows = range_of(words) if isinstance(words, str) and words.strip() else None
        except InvalidRange as exc:
            self._complain(f"{where}, {name}", f"skipRange is ignored: {exc}")
        return ChannelEntry(name, replaced, tuple(skip.replace("\0", "\ufffd") for skip in skips), follows)

    def _bundle(self, value: dict[str, Any], where: str) -> None:
        draft, name = self._draft(value, "package"), _read_name(value, "name")
        if name in draft.bundles:
            raise _Unusable(f"bundle {name} of package {value['package']} is there twice; the first one counts")
        try:
            bundle = replace(_read_bundle(name, value), kubernetes=operator_kubernetes(told := read_operator(value)))
        except _Unusable as exc:
            self._leave_out(draft.unusable_bundles, name, str(exc), where)
            raise
        self._keep(
            where,
            _estimate_size(
                bundle.name,
                bundle.image,
                bundle.kubernetes,
                *bundle.apis,
                *bundle.needs,
                *bundle.needed,
                *bundle.requires,
            ),
        )
        draft.bundles[name] = bundle
        if self._shelf:
            self._shelf.put_bundle(value["package"], name, told)

    def _keep(self, where: str, size: int) -> None:
        self._kept += size
        if self._kept > self._limits.max_kept_bytes:
            raise BundleTooLarge(
                f"{where}: the names and references of the catalog have more than {self._limits.max_kept_bytes} "
                "bytes (max_kept_bytes)"
            )

    def _deprecations(self, value: dict[str, Any], where: str) -> None:
        draft = self._draft(value, "package")
        for listed_entry in _read_list(value, "entries"):
            reference = listed_entry.get("reference") if isinstance(listed_entry, dict) else None
            if not isinstance(reference, dict):
                raise _Unusable("a deprecation that does not say of what")
            found = Deprecation(
                _read_text(reference, "schema"),
                _read_text(reference, "name"),
                _read_text(listed_entry, "message", most=MAX_TEXT),
            )
            self._keep(where, _estimate_size(found.schema, found.name, found.message))
            draft.deprecations.append(found)

    def catalog(self) -> Catalog:
        packages: dict[str, Package] = {}
        for name, draft in sorted(self._drafts.items()):
            if draft.package is None:
                if name not in self._undescribed:
                    self._complain(f"package {name}", "no olm.package describes it, so it is left out")
                continue
            packages[name] = Package(
                draft.package.name,
                draft.package.default_channel,
                draft.package.description,
                dict(sorted(draft.channels.items())),
                draft.bundles,
                tuple(draft.deprecations),
                {name: why for name, why in draft.unusable_channels.items() if name not in draft.channels},
                {name: why for name, why in draft.unusable_bundles.items() if name not in draft.bundles},
            )
            for problem in list_contradictions(packages[name]):
                self._complain(f"package {name}", problem)
        if not packages:
            words = f"expected packages (schema olm.package), found none in {self._documents} documents"
            if self._problems:
                words += f"; {self._problems[0]}"
                if more := len(self._problems) + self._unsaid - 1:
                    words += f"; and {number(more, 'more problem')}"
            raise InvalidManifest(f"this is no catalog: {words}")
        if self._unsaid:
            self._problems.append(CatalogProblem("the catalog", f"{self._unsaid} more problems are not listed"))
        return Catalog(packages, tuple(self._problems))


def _describe_place(value: Any, where: str) -> str:
    """Where a document stands, with the package that it is about, as far as it says so."""
    key = "name" if isinstance(value, dict) and value.get("schema") == "olm.package" else "package"
    name = value.get(key) if isinstance(value, dict) else None
    is_name = isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable()
    return f"package {name}, {where}" if is_name else where


def _read_bundle(name: str, value: dict[str, Any]) -> CatalogBundle:
    properties = [item for item in _read_list(value, "properties") if isinstance(item, dict)]
    about = [prop.get("value") for prop in properties if prop.get("type") == "olm.package"]
    if len(about) != 1 or not isinstance(about[0], dict):
        raise _Unusable(f"bundle {name} has {len(about)} properties olm.package; expected one, with its version")
    if about[0].get("packageName") != value["package"]:
        raise _Unusable(f"bundle {name} calls its package {about[0].get('packageName')!r}, not {value['package']!r}")
    try:
        version = version_of(_read_text(about[0], "version"))
    except InvalidRange as exc:
        raise _Unusable(f"bundle {name}: {exc}") from exc
    release = _read_text(about[0], "release")
    if release and not is_release(release):
        raise _Unusable(
            f"bundle {name} has the release {release[:80]!r}, which OLM takes for none; expected one such as 2.alpha"
        )
    apis = [prop.get("value") for prop in properties if prop.get("type") == "olm.gvk"]
    return CatalogBundle(
        name,
        _read_text(value, "image", most=1024),
        version,
        release,
        tuple(
            sorted(
                f"{_read_text(api, 'kind')}.{_read_text(api, 'group')}/{_read_text(api, 'version')}"
                for api in apis
                if isinstance(api, dict)
            )
        ),
        tuple(sorted({str(prop["type"]) for prop in properties if prop.get("type") in NEEDS})),
        needed=tuple(sorted({_describe_constraint(prop) for prop in properties if prop.get("type") in NEEDS})),
        requires=tuple(sorted({_constraint_record(prop) for prop in properties if prop.get("type") in NEEDS})),
    )


def _constraint_record(constraint: dict[str, Any]) -> str:
    """What is kept of a constraint; of one that is too long only that it cannot be read."""
    kind = str(constraint["type"])
    text = json.dumps([kind, constraint.get("value")], separators=(",", ":"), default=str).replace("\\u0000", "\\ufffd")
    return text if len(text) <= MAX_CHARACTERS else json.dumps([kind, None])


def _describe_constraint(constraint: dict[str, Any]) -> str:
    """What a constraint asks for, in words; its type alone where it does not say."""
    kind, value = str(constraint["type"]), constraint.get("value")
    asked = value if isinstance(value, dict) else {}
    if kind == "olm.package.required" and (package := _shown_text(asked, "packageName")):
        return f"package {package} {_shown_text(asked, 'versionRange')}".strip()
    if kind == "olm.gvk.required" and (api := _shown_text(asked, "kind")):
        return f"API {_shown_text(asked, 'group')}/{_shown_text(asked, 'version')} {api}"
    keys = ", ".join(sorted(str(key) for key in asked))[:MAX_NAME].replace("\0", "\ufffd")
    words = _shown_text(asked, "failureMessage") or keys
    return f"{kind}: {words}" if words else kind


def _shown_text(value: dict[str, Any], key: str) -> str:
    """A text that is only shown: what is no text is left out, and a long one is cut."""
    text = value.get(key)
    return text[:MAX_NAME].replace("\0", "\ufffd") if isinstance(text, str) else ""


def _cut_words(words: str) -> str:
    """Words may quote any part of a document: megabytes, and NUL, which no database keeps."""
    words = words[: MAX_WORDS + 1].replace("\0", "\ufffd")
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"


def _estimate_size(*texts: str) -> int:
    """About the memory that these take."""
    return sum(map(len, texts)) + 100 * (len(texts) + 1)


def _read_name(value: dict[str, Any], key: str) -> str:
    text = _read_text(value, key)
    if not text:
        raise _Unusable(f"{value.get('schema', 'an entry')} without {key}")
    if not str(value[key]).isprintable() or text != " ".join(text.split()):
        raise _Unusable(f"{key} holds characters that cannot be seen: {str(value[key])[:MAX_SHOWN]!a}")
    return text


def _read_text(value: dict[str, Any], key: str, *, most: int = MAX_NAME) -> str:
    text = value.get(key)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise _Unusable(f"{key} is {type(text).__name__}, expected a text")
    text = text.replace("\0", "\ufffd")  # which no database keeps
    if len(text) > most and most == MAX_TEXT:
        return f"{text[: MAX_TEXT - 1]}…"
    if len(text) > most:
        raise _Unusable(f"{key} has {len(text)} characters, at most {most}")
    return text


def _read_list(value: dict[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise _Unusable(f"{key} is {type(found).__name__}, expected a list")
    return found
