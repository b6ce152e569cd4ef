"""Where a branch or tag points to now, and which way it moved: by the references and commits of a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.errors import SourceUnavailable
from provisioner.source import GitSource, course, poll
from provisioner.source.git import course_in
from provisioner.source.pack import GitObject
from provisioner.values import Course
from tests.support.servers.hostile import HERE, MAX
from tests.support.servers.http import GitServer, Repository


@pytest.fixture
def repository(git_server: GitServer, tmp_path: Path) -> Repository:
    return git_server.repository(tmp_path.name)


def test_a_branch_is_polled_by_the_list_of_references_alone(repository: Repository, git_server: GitServer) -> None:
    first = repository.commit({"a": "1"})
    repository.point("refs/heads/main-2", repository.commit({"a": "other"}, branch="other"))
    asked = len(git_server.asked)
    source = GitSource(repository.url, branch="main")
    assert poll(source, egress=HERE, max_bytes=MAX).digest == first
    assert b"want " not in b"".join(one.body for one in git_server.asked[asked:])
    second = repository.commit({"a": "2"})
    assert poll(source, egress=HERE, max_bytes=MAX).digest == second
    repository.git("update-ref", "-d", "refs/heads/main")
    with pytest.raises(SourceUnavailable, match="has no refs/heads/main"):
        poll(source, egress=HERE, max_bytes=MAX)


def test_a_tag_is_the_commit_that_it_leads_to(repository: Repository) -> None:
    commit = repository.commit({"a": "1"})
    repository.tag("light", commit)
    repository.tag("annotated", commit, message="words")
    for name in ("light", "annotated"):
        assert poll(GitSource(repository.url, tag=name), egress=HERE, max_bytes=MAX).digest == commit


@pytest.mark.parametrize("can_filter", [True, False], ids=["commits only", "with files"])
def test_a_move_is_forward_only_if_the_new_commit_follows_the_earlier_one(
    repository: Repository, can_filter: bool
) -> None:
    repository.git("config", "uploadpack.allowFilter", str(can_filter).lower())
    first, second, third = (repository.commit({"a": text * 2000}) for text in "123")
    rewritten = repository.commit({"a": "4"}, branch="aside")
    source = GitSource(repository.url, branch="main")

    def way(before: str, after: str) -> Course:
        found, why = course(source, before=before, after=after, egress=HERE)
        assert not why
        return found

    assert way(first, third) is Course.FORWARD
    assert way(third, first) is Course.BACKWARD
    assert way(second, rewritten) is Course.ASIDE
    # What a force-push left behind may be gone from the server.
    assert way("1" * 40, third) is Course.ASIDE


def test_what_nobody_could_find_out_is_unknown_and_says_why(repository: Repository) -> None:
    commit = repository.commit({"a": "1"})
    found, why = course(GitSource(f"{repository.url}x", branch="main"), before="1" * 40, after=commit, egress=HERE)
    assert (found, "there is no git repository" in why) == (Course.UNKNOWN, True)


def test_only_the_header_of_a_commit_has_parents() -> None:
    claimed = f"tree {'0' * 40}\n\nparent {'b' * 40}\n".encode()
    commits = {"a" * 40: GitObject(b"commit", claimed)}
    assert course_in(commits, before="b" * 40, after="a" * 40) is Course.ASIDE
