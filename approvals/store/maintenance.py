"""Looking whether each content is there, and copying all of them from one store to another."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from approvals.clock import database_now
from approvals.encryption.files import UNFINISHED_AGE, ContentFiles, content_files
from approvals.errors import KeyMissing, StoreUnavailable
from approvals.models import Content
from approvals.store.contents import is_ours, path_of, read
from provisioner.errors import DigestMismatch
from provisioner.sentences import and_more

PROGRESS_EVERY = 100
PROBLEMS_SHOWN = 20
PIECE_BYTES = 1024 * 1024


@dataclass
class ContentsFound:
    """What became of each content that has a row. `problems` are of those that are missing, changed or unreadable."""

    contents: int = 0
    copied: int = 0
    byte_count: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def problems_in_words(self) -> str:
        more = and_more(len(self.problems) - PROBLEMS_SHOWN)
        shown = "\n".join(f"  {line}" for line in [*self.problems[:PROBLEMS_SHOWN], *([more] if more else [])])
        return (
            f"{len(self.problems)} contents cannot be used. Restore them from a backup, or have the requests that need "
            f"them made again.\n{shown}"
        )


def verify_contents(tell: Callable[[str], None], *, is_read: bool) -> ContentsFound:
    """Whether each content is there; with `is_read`, whether its bytes are those that it was named after."""
    files, found = content_files(), ContentsFound()
    present = {file.name for file in files.stored()}
    for row in _kept(tell):
        found.contents += 1
        if is_read:
            problem = _unreadable(row, files)
        else:
            problem = "" if path_of(row.digest) in present else f"content {row.digest} is not in the content store"
        if problem:
            found.problems.append(problem)
    return found


def copy_contents(source: ContentFiles, target: ContentFiles, tell: Callable[[str], None]) -> ContentsFound:
    """Have `target` hold every content of `source` that has a row. What it holds already is read, and left alone.

    As it is encrypted, so neither store sees more than the other. Each copy is read back and hashed. May be stopped at
    any time and run again.
    """
    found = ContentsFound()
    for row in _kept(tell):
        found.contents += 1
        if not _unreadable(row, target):
            continue
        if problem := _unreadable(row, source):
            found.problems.append(problem)
            continue
        found.byte_count += _copy(path_of(row.digest), source, target)
        if problem := _unreadable(row, target):
            found.problems.append(f"after it was copied: {problem}")
        else:
            found.copied += 1
    return found


def _kept(tell: Callable[[str], None]) -> Iterator[Content]:
    rows = Content.objects.filter(removed_at=None).order_by("pk")
    for count, digest in enumerate(list(rows.values_list("pk", flat=True)), start=1):
        if row := rows.filter(pk=digest).first():
            yield row
        if count % PROGRESS_EVERY == 0:
            tell(f"  {count} contents")


def _copy(name: str, source: ContentFiles, target: ContentFiles) -> int:
    sizes: list[int] = []

    def parts() -> Iterator[bytes]:
        with source.open(name, "rb") as file:
            while part := file.read(PIECE_BYTES):
                sizes.append(len(part))
                yield part

    target.replace(name, parts())
    return sum(sizes)


def _unreadable(row: Content, files: ContentFiles) -> str:
    """Why it cannot be used from there, "" if it can. Raises StoreUnavailable: that says nothing about a content."""
    try:
        read(row, files)
    except (DigestMismatch, KeyMissing) as exc:
        return str(exc)
    return ""


TRIAL = b"written and deleted by pratique-manage check_content_store"


@dataclass(frozen=True, slots=True)
class Tried:
    """One thing that processes do with the store; `problem` is empty where it went well."""

    what: str
    problem: str = ""
    is_refused: bool = False


def try_store() -> Iterator[Tried]:
    """Do once what processes do with the store, with a file of another name than contents have."""
    files, name = content_files(), f"trial-{secrets.token_hex(16)}"
    yield _tried("list", files.look)

    def read_trial() -> None:
        with files.open(name, "rb") as file:
            data = file.read(len(TRIAL) + 1)
        if data != TRIAL:
            raise StoreUnavailable("what was written a moment ago is read as something else")

    yield (written := _tried("write", partial(files.replace, name, [TRIAL])))
    if not written.problem:
        yield _tried("read", read_trial)
        yield _tried("delete", partial(files.delete, name))
    yield _tried(
        "delete unfinished uploads", partial(files.collect_unfinished, database_now() - UNFINISHED_AGE, is_ours)
    )


def _tried(what: str, trial: Callable[[], object]) -> Tried:
    try:
        trial()
    except StoreUnavailable as exc:
        return Tried(what, str(exc), exc.is_refused)
    except OSError as exc:
        return Tried(what, str(exc))
    return Tried(what)
