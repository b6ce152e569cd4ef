"""Which way a branch or tag moved: forward along its history, back, or off it. Only commits are read, never files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from provisioner.errors import PratiqueError
from provisioner.source.egress import EgressPolicy
from provisioner.source.git import GitSource, talking
from provisioner.source.pack import GitObject, objects_of
from provisioner.source.specs import Credentials
from provisioner.values import Course

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
        found = commits.get(todo.pop())
        for parent in _parents(found) if found else ():
            if parent == before:
                return Course.FORWARD
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return Course.ASIDE


def _parents(commit: GitObject) -> list[str]:
    """Those of its header, which ends with the first empty line."""
    header = commit.data.partition(b"\n\n")[0].split(b"\n")
    return [found[1].decode() for line in header if (found := PARENT.fullmatch(line))]
