"""Git at one commit, by dulwich into memory: no files, hooks, filters or submodules on this machine.

And which way a branch or tag moved: forward along its history, back, or off it. Only commits are read for that.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from provisioner.errors import BadSource, BundleTooLarge, InvalidArchive, PratiqueError, SourceUnavailable, UnsafePath
from provisioner.source.egress import EgressPolicy, Origin
from provisioner.source.files import tar_of
from provisioner.source.git_addresses import pinned_repository, place_of_repository, shown_repository
from provisioner.source.pack import GitObject, objects_of
from provisioner.source.source_type import Credentials, Fetched, Polled, RemoteSource, SourceField, needed
from provisioner.values import Archive, Course, JsonObject, Pin

if TYPE_CHECKING:
    from provisioner.source.git_remote import Remote

COMMIT = re.compile(r"[0-9a-f]{40}")
REF_NAME = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]{1,255}")
LFS = b"version https://git-lfs.github.com/spec/"
LONGEST_LFS_POINTER_BYTES = 1024
GITLINK = 0o160000
MAX_TREE_ENTRIES = 200_000
MAX_TAGS_OF_TAGS = 8
# A server of protocol 0 lists all references whatever is asked for.
MAX_REFS_BYTES = 32 * 1024 * 1024
# The whole repository at that commit comes along, though only one folder of it may be wanted.
REPOSITORY_FACTOR = 2
# How servers say that they give only what a branch or tag points to.
NOT_ADVERTISED = ("not our ref", "unadvertised object")


@dataclass(frozen=True, slots=True)
class GitSource(RemoteSource):
    """A repository at exactly one of commit, branch or tag; `directory` is the folder wanted of it."""

    kind = "git"
    label = "Git repository"
    fields = (
        SourceField("repository", "Repository", "https:// or ssh:// URL", is_needed=True),
        SourceField("git_ref", "Git reference", choices=("tag", "branch", "commit")),
        SourceField("git_name", "Tag, branch or commit", is_needed=True),
        SourceField("directory", "Directory", "Directory in the repository"),
    )
    pin_name = "commit"

    repository: str
    commit: str = ""
    branch: str = ""
    tag: str = ""
    directory: str = ""
    destination: str = ""

    @classmethod
    def parse(cls, body: JsonObject, where: str, destination: str) -> GitSource:
        ref = body.get("ref") or {}
        return cls(
            needed(body, "repository", where),
            commit=str(ref.get("commit") or ""),
            branch=str(ref.get("branch") or ""),
            tag=str(ref.get("tag") or ""),
            directory=str(body.get("directory") or ""),
            destination=destination,
        )

    @staticmethod
    def to_spec(given: Mapping[str, str]) -> dict[str, Any]:
        ref = {given["git_ref"] or "tag": given["git_name"]}
        return {"repository": given["repository"], "ref": ref, "directory": given["directory"]}

    @staticmethod
    def to_form(body: JsonObject) -> dict[str, Any]:
        ref = body.get("ref") or {}
        named = next((name for name in ("tag", "branch", "commit") if ref.get(name)), "tag")
        plain = {name: body.get(name, "") for name in ("repository", "directory")}
        return {**plain, "git_ref": named, "git_name": ref.get(named, "")}

    @staticmethod
    def asked_words(body: JsonObject) -> list[tuple[str, str]]:
        ref = body.get("ref") or {}
        named = [(name, str(ref[name])) for name in ("commit", "branch", "tag") if ref.get(name)]
        folder = str(body.get("directory") or "")
        return [*named, ("directory", folder)] if folder else named

    @staticmethod
    def version_words(body: JsonObject) -> str:
        ref = body.get("ref") or {}
        return str(ref.get("tag") or ref.get("branch") or str(ref.get("commit", ""))[:12])

    def fetch(self, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
        """The files of `directory` at the commit named, or where branch or tag point to now; pinned to the commit.

        Raises BadSource (also for Git LFS pointers), UnsafePath for links and submodules inside `directory`,
        BundleTooLarge, ForbiddenAddress and TryLater. Memory holds at most `max_bytes` four times.
        """
        where = shown_repository(self.repository)
        _check_spec(self, where)
        with talking(self, egress, credentials, max_bytes) as remote:
            objects, wanted = _objects(self, remote, max_bytes)
        commit = _peeled(objects, wanted, where)
        if self.commit and commit != self.commit:
            raise BadSource(f"{where}: {self.commit} is a tag; expected the commit that it names, {commit}")
        pin = Pin(self.kind, pinned_repository(self.repository), commit, self.destination)
        return Fetched(pin, (Archive("", _Snapshot(objects, where, max_bytes).packed(commit, _folder(self, where))),))

    def poll(self, *, egress: EgressPolicy, max_bytes: int, known: Polled) -> Polled:
        """The commit that branch or tag points to now, by the server's list of references. Raises as `fetch`."""
        where = shown_repository(self.repository)
        _check_spec(self, where)
        name = _ref_of(self)
        with talking(self, egress, self.credentials, min(max_bytes, MAX_REFS_BYTES)) as remote:
            refs = remote.refs(name)
        found = refs.get(f"{name}^{{}}") or refs.get(name) or ""
        if not COMMIT.fullmatch(found):
            raise SourceUnavailable(f"{where}: has no {name}")
        return Polled(found)

    def is_floating(self, egress: EgressPolicy) -> bool:
        return not self.commit

    def pinned(self, pin: Pin) -> GitSource:
        return replace(self, commit=pin.digest, branch="", tag="")

    def place(self) -> Origin:
        return place_of_repository(self.repository)

    @property
    def shown(self) -> str:
        named = f"branch {self.branch}" if self.branch else f"tag {self.tag}"
        return f"{named} of {self.shown_place}"

    @property
    def shown_place(self) -> str:
        return shown_repository(self.repository)

    @property
    def address(self) -> tuple[str, ...]:
        return self.repository, self.branch, self.tag


def talking(
    source: GitSource, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int, *, thin_packs: bool = True
) -> AbstractContextManager[Remote]:
    """The source's server, with what goes wrong there as errors of ours."""
    from provisioner.source.git_remote import connected  # noqa: PLC0415 - dulwich takes long: with the first repository

    return connected(source.repository, egress, credentials, max_bytes, thin_packs=thin_packs)


def _ref_of(source: GitSource) -> str:
    return f"refs/heads/{source.branch}" if source.branch else f"refs/tags/{source.tag}"


def _check_spec(source: GitSource, where: str) -> None:
    named = [word for word in (source.commit, source.branch, source.tag) if word]
    if len(named) != 1:
        raise BadSource(f"{where}: expected exactly one of commit, branch and tag")
    if source.commit and not COMMIT.fullmatch(source.commit):
        raise BadSource(f"{where}: {source.commit[:64]!r} is no whole commit; expected its 40 hex digits")
    if not source.commit and not REF_NAME.fullmatch(named[0]):
        raise BadSource(f"{where}: {named[0][:64]!r} cannot be the name of a branch or tag")
    _folder(source, where)


def _folder(source: GitSource, where: str) -> list[bytes]:
    """The names that lead to the wanted folder; none is the root."""
    parts = [part for part in source.directory.split("/") if part not in ("", ".")]
    if ".." in parts or source.directory.startswith("/"):
        raise BadSource(f"{where}: directory {source.directory!r} leads out of the repository")
    try:
        return [part.encode() for part in parts]
    except UnicodeEncodeError as exc:  # half a surrogate pair
        raise BadSource(f"{where}: directory {source.directory!r} is not UTF-8") from exc


def _objects(source: GitSource, remote: Remote, max_bytes: int) -> tuple[dict[str, GitObject], str]:
    """The objects that the server sends, and the hash that was asked for."""
    from dulwich.errors import GitProtocolError  # noqa: PLC0415 - dulwich takes long to load

    prefixes = [_ref_of(source)]
    wish = _Wish(source, remote.shown)
    try:
        pack = remote.fetch(wish, depth=1, prefixes=["HEAD"] if source.commit else prefixes)
    except GitProtocolError as exc:
        if not source.commit or not any(words in str(exc) for words in NOT_ADVERTISED):
            raise
        pack = remote.fetch(_everything, depth=None, prefixes=["refs/heads/", "refs/tags/"])
    return objects_of(pack, REPOSITORY_FACTOR * max_bytes), wish.wanted


class _Wish:
    """dulwich's question which objects to fetch; `wanted` is what was answered."""

    def __init__(self, source: GitSource, where: str):
        self.wanted = source.commit
        self._name = _ref_of(source)
        self._where = where

    def __call__(self, refs: Mapping[Any, Any], depth: int | None = None) -> list[bytes]:
        if not self.wanted:
            found = refs.get(self._name.encode())
            if not found or not COMMIT.fullmatch(bytes(found).decode("ascii", "replace")):
                raise SourceUnavailable(f"{self._where}: has no {self._name}")
            self.wanted = bytes(found).decode()
        return [self.wanted.encode()]


def _everything(refs: Mapping[Any, Any], depth: int | None = None) -> list[bytes]:
    """What every branch and tag points to: the way to a commit that the server does not give by its hash."""
    found = {bytes(value) for name, value in refs.items() if not bytes(name).endswith(b"^{}")}
    return sorted(found) or [b"0" * 40]


def _peeled(objects: Mapping[str, GitObject], name: str, where: str) -> str:
    """The commit that `name` is, or that the tag `name` leads to."""
    for _ in range(MAX_TAGS_OF_TAGS):
        found = objects.get(name)
        if found is None:
            raise SourceUnavailable(f"{where}: {name} is no commit that the server gives")
        if found.type == b"commit":
            return name
        if found.type != b"tag":
            raise BadSource(f"{where}: {name} is a {found.type.decode()}; expected a commit")
        name = _line(found, b"object ", where)
    raise BadSource(f"{where}: a tag names a tag that names a tag, more than {MAX_TAGS_OF_TAGS} times")


def _line(found: GitObject, key: bytes, where: str) -> str:
    """The hash after `key` on the first line of a commit or tag."""
    first = found.data.partition(b"\n")[0]
    value = first.removeprefix(key).decode("ascii", "replace")
    if not first.startswith(key) or not COMMIT.fullmatch(value):
        raise InvalidArchive(f"{where}: a {found.type.decode()} is damaged")
    return value


class _Snapshot:
    """One commit's files out of the objects that came."""

    def __init__(self, objects: Mapping[str, GitObject], where: str, max_bytes: int):
        self._objects = objects
        self._where = where
        self._max_bytes = max_bytes
        self._entries = 0

    def packed(self, commit: str, folder: list[bytes]) -> bytes:
        """The folder as a tar, which is unpacked under the same bounds as every archive."""
        tree = self._tree_of(_line(self._objects[commit], b"tree ", self._where), folder, commit)
        return tar_of(self._files(tree))

    def _tree_of(self, tree: str, folder: list[bytes], commit: str) -> str:
        for depth, part in enumerate(folder, start=1):
            mode, name = next(((mode, sha) for name, mode, sha in self._entries_of(tree) if name == part), (0, ""))
            shown = b"/".join(folder[:depth]).decode("utf-8", "backslashreplace")
            if not name:
                raise BadSource(f"{self._where}: has no folder {shown} at {commit}")
            if not stat.S_ISDIR(mode):
                raise UnsafePath(f"{self._where}: {shown} is {_kind(mode)}; expected a folder")
            tree = name
        return tree

    def _files(self, tree: str) -> Iterator[tuple[str, bytes]]:
        """Every file below `tree`. A tree may stand in itself a thousand times over: each time counts."""
        found, total = False, 0
        todo: list[tuple[bytes, str]] = [(b"", tree)]
        while todo:
            folder, here = todo.pop()
            for name, mode, sha in self._entries_of(here):
                path = folder + name
                if stat.S_ISDIR(mode):
                    todo.append((path + b"/", sha))
                    continue
                found = True
                shown = path.decode("utf-8", "backslashreplace")
                if not stat.S_ISREG(mode):
                    raise UnsafePath(f"{self._where}: {shown} is {_kind(mode)}; expected regular files only")
                data = self._read_object(sha, b"blob")
                if len(data) < LONGEST_LFS_POINTER_BYTES and data.startswith(LFS):
                    raise BadSource(f"{self._where}: {shown} is a Git LFS pointer, and the file itself is not fetched")
                total += len(data)
                if total > self._max_bytes:
                    raise BundleTooLarge(
                        f"{self._where}: more than {self._max_bytes} bytes of files "
                        "(max_bytes, PRATIQUE_MAX_BUNDLE_MIB)"
                    )
                yield path.decode("utf-8", "surrogateescape"), data
        if not found:
            raise BadSource(f"{self._where}: there are no files in that folder")

    def _entries_of(self, tree: str) -> Iterator[tuple[bytes, int, str]]:
        from dulwich.objects import parse_tree  # noqa: PLC0415 - dulwich takes long to load

        for name, mode, sha in parse_tree(self._read_object(tree, b"tree"), 20, strict=True):
            self._entries += 1
            if self._entries > MAX_TREE_ENTRIES:
                raise BundleTooLarge(f"{self._where}: more than {MAX_TREE_ENTRIES} files and folders")
            if not name or b"/" in name:
                raise UnsafePath(f"{self._where}: {name[:80]!r} is no name of a file")
            yield name, mode, sha.decode()

    def _read_object(self, sha: str, kind: bytes) -> bytes:
        found = self._objects.get(sha)
        if found is None or found.type != kind:
            raise InvalidArchive(f"{self._where}: the {kind.decode()} {sha} is missing from what the server sent")
        return found.data


def _kind(mode: int) -> str:
    kinds = {GITLINK: "a submodule", stat.S_IFLNK: "a symbolic link", stat.S_IFREG: "a file"}
    return kinds.get(stat.S_IFMT(mode), "a special file")


# Some 30,000 commits, or fewer with their files where the server cannot leave these out.
MAX_HISTORY_BYTES = 16 * 1024 * 1024
PARENT = re.compile(rb"parent ([0-9a-f]{40})")


def course(
    source: GitSource, *, before: str, after: str, egress: EgressPolicy, credentials: Credentials | None = None
) -> tuple[Course, str]:
    """How the commit `after` stands to `before`, and why nobody could tell where it is Course.UNKNOWN.

    Forward is proved by the hashes themselves. Back is what the server gives as already held with `before`.
    """
    if before == after:
        return Course.FORWARD, ""
    try:
        with talking(source, egress, source.credentials or credentials, MAX_HISTORY_BYTES, thin_packs=False) as remote:
            pack = remote.fetch(lambda *_, **__: [after.encode()], depth=None, prefixes=["HEAD"], known=before)
            commits = objects_of(pack, 4 * MAX_HISTORY_BYTES)
    except PratiqueError as exc:
        return Course.UNKNOWN, str(exc)
    return course_in(commits, before=before, after=after), ""


def course_in(commits: Mapping[str, GitObject], *, before: str, after: str) -> Course:
    """By the commits that a server sends to somebody who has `before` and asks for `after`. PURE."""
    if after not in commits:
        return Course.BACKWARD
    todo, seen = [after], {after}
    while todo:
        commit = commits.get(todo.pop())
        # Those of its header, which ends with the first empty line.
        header = commit.data.partition(b"\n\n")[0].split(b"\n") if commit else []
        for parent in (found[1].decode() for line in header if (found := PARENT.fullmatch(line))):
            if parent == before:
                return Course.FORWARD
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return Course.ASIDE
