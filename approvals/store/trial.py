"""Doing once what processes do with the content store, so that an operator sees which right or setting is missing."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from approvals.clock import database_now
from approvals.encryption.files import UNFINISHED_AGE, ContentFiles, content_files
from approvals.errors import StoreUnavailable
from approvals.store.contents import is_ours

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
    yield (written := _tried("write", partial(files.replace, name, [TRIAL])))
    if not written.problem:
        yield _tried("read", partial(_read_trial, files, name))
        yield _tried("delete", partial(files.delete, name))
    yield _tried(
        "delete unfinished uploads", partial(files.collect_unfinished, database_now() - UNFINISHED_AGE, is_ours)
    )


def _read_trial(files: ContentFiles, name: str) -> None:
    with files.open(name, "rb") as file:
        data = file.read(len(TRIAL) + 1)
    if data != TRIAL:
        raise StoreUnavailable("what was written a moment ago is read as something else")


def _tried(what: str, trial: Callable[[], object]) -> Tried:
    try:
        trial()
    except StoreUnavailable as exc:
        return Tried(what, str(exc), exc.is_refused)
    except OSError as exc:
        return Tried(what, str(exc))
    return Tried(what)
