"""Doing once what processes do with the content store, so that an operator sees which right or setting is missing."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from django.utils import timezone

from approvals.encryption.files import UNFINISHED_AGE, ContentFiles, content_files
from approvals.errors import StoreUnavailable

TRIAL = b"written and deleted by pratique-manage check_content_store"


@dataclass(frozen=True, slots=True)
class Tried:
    """One thing that processes do with the store; `problem` is empty where they may."""

    what: str
    problem: str


def try_store() -> Iterator[Tried]:
    """Do once what processes do with the store, with a file of another name than contents have."""
    files, name = content_files(), f"trial-{secrets.token_hex(16)}"
    yield Tried("list", _problem(files.look))
    written = Tried("write", _problem(partial(files.replace, name, [TRIAL])))
    yield written
    if not written.problem:
        yield Tried("read", _problem(partial(_read_trial, files, name)))
        yield Tried("delete", _problem(partial(files.delete, name)))
    now = timezone.now()
    yield Tried("delete unfinished uploads", _problem(partial(files.collect_unfinished, now - UNFINISHED_AGE)))


def _read_trial(files: ContentFiles, name: str) -> None:
    with files.open(name, "rb") as file:
        data = file.read(len(TRIAL) + 1)
    if data != TRIAL:
        raise StoreUnavailable("what was written a moment ago is read as something else")


def _problem(trial: Callable[[], object]) -> str:
    try:
        trial()
    except (StoreUnavailable, OSError) as exc:
        return str(exc)
    return ""
