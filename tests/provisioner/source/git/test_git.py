"""Git at one commit: from a real server, from one that gives only its branches, and from hostile ones."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch, ForbiddenAddress, Unreachable, UnsafePath
from provisioner.source import Credentials, Fetched, GitSource, fetch
from provisioner.unpack import unpack
from provisioner.values import Pin
from tests.support.servers.hostile import HASTY, HERE, MAX
from tests.support.servers.http import Asked, Authority, FileServer, GitServer, Listening, Reply, Repository
from tests.support.servers.registry import CREDENTIALS

FILES = {"README.md": b"hello\n", "deploy/a.yaml": b"kind: A\n", "deploy/sub/b.yaml": b"kind: B\n"}
_numbers = itertools.count()


@pytest.fixture
def repository(git_server: GitServer) -> Repository:
    return git_server.repository(f"repository-{next(_numbers)}")


def clone(repository: Repository | str, **options: Any) -> Fetched:
    url = repository if isinstance(repository, str) else repository.url
    given = {"egress": HERE, "max_bytes": MAX, "credentials": None, "pin": None}
    calling = {name: options.pop(name, value) for name, value in given.items()}
    return fetch(
        GitSource(url, **({"branch": "main"} if not options.keys() & {"commit", "branch", "tag"} else {}), **options),
        **calling,
    )


def files_of(repository: Repository | str, **options: Any) -> Mapping[str, bytes]:
    return unpack(clone(repository, **options).archives).files


def imported(repository: Repository, *lines: str, branch: str = "main") -> str:
    """One commit of `lines` of fast-import; returns its hash."""
    head = f"commit refs/heads/{branch}\ncommitter T <t@example.com> 1767323045 +0000\ndata 1\nx\n"
    repository.git("fast-import", "--quiet", "--force", stdin=(head + "\n".join(lines) + "\n").encode())
    return repository.resolve(branch)


# What is fetched


def test_a_branch_is_resolved_once_and_pinned_to_its_commit(repository: Repository) -> None:
    commit = repository.commit(FILES)
    found = clone(repository, destination="extra")
    assert found.pin == Pin("git", repository.url, commit, "extra")
    assert unpack(found.archives).files == FILES


@pytest.mark.parametrize("message", [None, "annotated"])
def test_a_tag_is_pinned_to_its_commit_and_not_to_itself(repository: Repository, message: str | None) -> None:
    commit = repository.commit(FILES)
    repository.tag("v1.2.3", commit, message=message)
    repository.commit({"other.yaml": b"2"})
    found = clone(repository, tag="v1.2.3")
    assert (found.pin.digest, unpack(found.archives).files) == (commit, FILES)


def test_a_tag_of_a_tag_leads_to_the_commit(repository: Repository) -> None:
    commit = repository.commit(FILES)
    repository.tag("inner", commit, message="one")
    repository.git("tag", "-a", "-m", "two", "outer", "refs/tags/inner")
    assert clone(repository, tag="outer").pin.digest == commit


def test_an_old_commit_is_fetched_alone(repository: Repository) -> None:
    old = repository.commit(FILES)
    for number in range(3):
        repository.commit({"new.yaml": str(number)})
    assert files_of(repository, commit=old) == FILES


def test_a_moved_branch_does_not_move_what_is_pinned(repository: Repository) -> None:
    repository.commit(FILES)
    pin = clone(repository).pin
    repository.commit({"evil.yaml": b"kind: Evil\n"})
    assert files_of(repository, pin=pin) == FILES
    assert files_of(repository) == {"evil.yaml": b"kind: Evil\n"}


def test_what_deltas_hold_is_put_together_again(repository: Repository) -> None:
    body = "\n".join(f"line {number} of a file that changes only a little" for number in range(2000))
    for number in range(4):
        commit = repository.commit({f"{name}.yaml": f"{body}\n{name} {number}\n" for name in range(5)})
    repository.git("repack", "-adfq", "--depth=50", "--window=50")
    assert files_of(repository, commit=commit) == {f"{name}.yaml": f"{body}\n{name} 3\n".encode() for name in range(5)}


def test_an_empty_file_and_an_odd_name_come_too(repository: Repository) -> None:
    files = {"empty.yaml": b"", "with space é.yaml": b"1"}
    repository.commit(files)
    assert files_of(repository) == files


REFUSED_FORMS = {
    "nothing named": ({"branch": ""}, "exactly one of commit, branch and tag"),
    "two named": ({"branch": "main", "tag": "v1"}, "exactly one of"),
    "a short commit": ({"commit": "abc1234"}, "'abc1234' is no whole commit; expected its 40 hex digits"),
    "an upper-case commit": ({"commit": "A" * 40}, "no whole commit"),
    "an odd branch": ({"branch": "a b"}, "cannot be the name"),
    "a line break": ({"branch": "a\n0000"}, "cannot be the name"),
    "no such branch": ({"branch": "none"}, "has no refs/heads/none"),
    "no such tag": ({"tag": "main"}, "has no refs/tags/main"),
    "no such commit": ({"commit": "0123456789" * 4}, "not our ref|no commit that the server gives"),
}


@pytest.mark.parametrize(("named", "words"), REFUSED_FORMS.values(), ids=REFUSED_FORMS)
def test_what_names_no_commit_is_refused(repository: Repository, named: dict[str, str], words: str) -> None:
    repository.commit(FILES)
    with pytest.raises(BadSource, match=words):
        clone(repository, **named)


def test_the_hash_of_a_tag_or_a_tree_is_no_commit(repository: Repository) -> None:
    commit = repository.commit(FILES)
    repository.tag("v1", commit, message="annotated")
    tag = repository.git("rev-parse", "refs/tags/v1").decode().strip()
    with pytest.raises(BadSource, match=f"{tag} is a tag; expected the commit that it names, {commit}"):
        clone(repository, commit=tag)
    repository.git("update-ref", "refs/tags/tree", repository.git("rev-parse", "main^{tree}").decode().strip())
    with pytest.raises(BadSource, match="is a tree; expected a commit"):
        clone(repository, tag="tree")


# The folder wanted of it

FOLDERS = {
    "root": ("", FILES),
    "dot": (".", FILES),
    "a folder": ("deploy", {"a.yaml": b"kind: A\n", "sub/b.yaml": b"kind: B\n"}),
    "slash at the end": ("deploy/", {"a.yaml": b"kind: A\n", "sub/b.yaml": b"kind: B\n"}),
    "dot slash": ("./deploy/./sub", {"b.yaml": b"kind: B\n"}),
    "deeper": ("deploy/sub", {"b.yaml": b"kind: B\n"}),
}


@pytest.mark.parametrize(("directory", "expected"), FOLDERS.values(), ids=FOLDERS)
def test_only_the_wanted_folder_comes(repository: Repository, directory: str, expected: dict[str, bytes]) -> None:
    repository.commit(FILES)
    assert files_of(repository, directory=directory) == expected


@pytest.mark.parametrize("name", ["m", "ab", "a", "..a"])
def test_a_folder_of_a_short_name_is_found(repository: Repository, name: str) -> None:
    repository.commit({f"{name}/x.yaml": b"1"})
    assert files_of(repository, directory=name) == {"x.yaml": b"1"}


@pytest.mark.parametrize("directory", ["..", "../x", "deploy/..", "deploy/../..", "/deploy", "/"])
def test_a_folder_outside_the_repository_is_refused(repository: Repository, directory: str) -> None:
    with pytest.raises(BadSource, match="leads out of the repository"):
        clone(repository, directory=directory)


@pytest.mark.parametrize("directory", ["m", "dep", "deploy/x", "DEPLOY"])
def test_a_folder_that_is_not_there_is_said_so(repository: Repository, directory: str) -> None:
    commit = repository.commit(FILES)
    with pytest.raises(BadSource, match=f"has no folder {directory} at {commit}"):
        clone(repository, directory=directory)


def test_a_file_is_no_folder(repository: Repository) -> None:
    repository.commit(FILES)
    with pytest.raises(UnsafePath, match=r"README.md is a file; expected a folder"):
        clone(repository, directory="README.md")


SPECIAL = {
    "symbolic link": (
        "M 120000 inline deploy/link\ndata 11\n/etc/passwd",
        UnsafePath,
        "deploy/link is a symbolic link",
    ),
    "submodule": (f"M 160000 {'1' * 40} deploy/module", UnsafePath, "deploy/module is a submodule"),
    "LFS pointer": (
        "M 100644 inline deploy/big.bin\ndata 43\nversion https://git-lfs.github.com/spec/v1\n",
        BadSource,
        "deploy/big.bin is a Git LFS pointer",
    ),
    "backslash": ('M 100644 inline "deploy\\\\x"\ndata 1\nx', UnsafePath, "backslash"),
    "another encoding": ('M 100644 inline "\\377\\376.yaml"\ndata 1\nx', UnsafePath, "not UTF-8"),
    "colliding names": (
        "M 100644 inline A\ndata 1\nx\nM 100644 inline a\ndata 1\nx",
        UnsafePath,
        "differ only in case",
    ),
}


@pytest.mark.parametrize(("line", "error", "words"), SPECIAL.values(), ids=SPECIAL)
def test_what_is_no_regular_file_is_refused_by_name(
    repository: Repository, line: str, error: type[Exception], words: str
) -> None:
    imported(repository, line)
    with pytest.raises(error, match=words):
        files_of(repository)


def test_links_and_submodules_beside_the_wanted_folder_do_not_matter(repository: Repository) -> None:
    imported(
        repository,
        "M 120000 inline link\ndata 11\n/etc/passwd",
        f"M 160000 {'1' * 40} module",
        "M 100644 inline wanted/a.yaml\ndata 1\n1",
    )
    assert files_of(repository, directory="wanted") == {"a.yaml": b"1"}


def test_a_link_in_the_way_to_the_wanted_folder_is_not_followed(repository: Repository) -> None:
    imported(repository, "M 120000 inline link\ndata 6\nwanted", "M 100644 inline wanted/a.yaml\ndata 1\n1")
    with pytest.raises(UnsafePath, match="link is a symbolic link; expected a folder"):
        clone(repository, directory="link")


# Servers


def old_server(git_server: GitServer) -> Listening:
    """The same repositories by the first protocol, where only what is advertised may be asked for."""

    def answer(asked: Asked) -> Reply:
        headers = {name: value for name, value in asked.headers.items() if name != "git-protocol"}
        return git_server._answer(replace(asked, headers=headers))

    return Listening(answer)


@pytest.fixture
def by_branches_only(git_server: GitServer, repository: Repository) -> Iterator[str]:
    repository.git("config", "uploadpack.allowAnySHA1InWant", "false")
    server = old_server(git_server)
    yield repository.url.replace(git_server.url, server.url)
    server.stop()


def test_a_server_that_gives_only_branches_still_gives_an_old_commit(
    by_branches_only: str, repository: Repository
) -> None:
    old = repository.commit(FILES)
    new = repository.commit({"new.yaml": b"2"})
    assert files_of(by_branches_only, commit=new) == {"new.yaml": b"2"}
    assert files_of(by_branches_only, commit=old) == FILES
    assert files_of(by_branches_only, branch="main") == {"new.yaml": b"2"}


def test_a_commit_that_no_branch_leads_to_is_said_so(by_branches_only: str, repository: Repository) -> None:
    repository.commit(FILES)
    with pytest.raises(BadSource, match="is no commit that the server gives"):
        clone(by_branches_only, commit="0123456789" * 4)


def test_passwords_open_the_host_they_are_for_and_no_other(git_server_with_auth: GitServer) -> None:
    repository = git_server_with_auth.repository(f"private-{next(_numbers)}")
    repository.commit(FILES)
    user, password = CREDENTIALS
    host = git_server_with_auth.url.removeprefix("http://")
    assert files_of(repository, credentials=Credentials(host, user, password)) == FILES
    with pytest.raises(BadSource, match="answered 401: the given credentials do not fit") as refusal:
        clone(repository, credentials=Credentials(host, user, "hunter2"))
    assert "hunter2" not in str(refusal.value)
    git_server_with_auth.asked.clear()
    with pytest.raises(BadSource, match="answered 401: no credentials for"):
        clone(repository, credentials=Credentials("example.com", user, password))
    assert all("authorization" not in asked.headers for asked in git_server_with_auth.asked)


def test_S08_a_redirected_clone_comes_without_the_password(
    repository: Repository, web: FileServer, git_server: GitServer
) -> None:
    commit = repository.commit(FILES)
    name = repository.path.name
    other = git_server.url.replace("127.0.0.1", "localhost")
    target = f"{other}/{name}/info/refs?service=git-upload-pack"
    web.serve(f"/{name}/info/refs", status=301, headers={"Location": target})
    git_server.asked.clear()
    mine = Credentials("127.0.0.1", "me", "hunter2")
    with pytest.raises(BadSource, match="another host; PRATIQUE_ALLOWED_SOURCE_HOSTS"):
        clone(f"{web.url}/{name}", credentials=mine)
    assert not git_server.asked
    listed = replace(HERE, allowed_hosts=("localhost",))
    assert clone(f"{web.url}/{name}", credentials=mine, egress=listed).pin.digest == commit
    assert git_server.asked
    assert all("authorization" not in asked.headers for asked in git_server.asked)
    assert "authorization" in web.asked[-1].headers


def test_S18_a_git_server_inside_is_refused(repository: Repository, web: FileServer) -> None:
    with pytest.raises(ForbiddenAddress):
        clone(repository, egress=replace(HERE, allowed_networks=()))
    location = "http://169.254.169.254/r/info/refs?service=git-upload-pack"
    web.serve("/r/info/refs", status=301, headers={"Location": location})
    with pytest.raises(ForbiddenAddress):
        clone(f"{web.url}/r", egress=replace(HERE, allowed_hosts=("169.254.169.254",)))


def test_https_is_checked_with_the_operator_s_authority(tmp_path: Any, authority: Authority) -> None:
    server = GitServer(tmp_path, authority=authority)
    try:
        repository = server.repository("tls")
        repository.commit(FILES)
        assert files_of(repository, egress=replace(HERE, plain_http_hosts=(), ca_pem=authority.ca_pem)) == FILES
        with pytest.raises(BadSource, match="certificate is not trusted"):
            clone(repository)
    finally:
        server.stop()


URLS = {
    "file": ("file:///etc", "expected a URL"),
    "path": ("/srv/git/x", "expected a URL"),
    "git protocol": ("git://example.com/x", "expected a URL"),
    "a program": ("ext::sh -c id", "expected a URL"),
    "credentials": ("https://me:hunter2@example.com/x", "holds credentials"),
    "ssh with a password": ("ssh://me:hunter2@example.com/x", "holds credentials"),
    "ssh without a key": ("ssh://git@example.com/x", "needs a private key"),
    "scp-like without a key": ("git@example.com:x/y.git", "needs a private key"),
}


@pytest.mark.parametrize(("url", "words"), URLS.values(), ids=URLS)
def test_a_repository_of_another_kind_is_refused(url: str, words: str) -> None:
    with pytest.raises(BadSource, match=words) as refusal:
        clone(url)
    assert "hunter2" not in str(refusal.value)


def test_plain_http_only_where_the_operator_allows_it(repository: Repository) -> None:
    with pytest.raises(BadSource, match="PRATIQUE_PLAIN_HTTP_HOSTS"):
        clone(repository, egress=replace(HERE, plain_http_hosts=()))


PKT = "application/x-git-upload-pack-advertisement"
NO_GIT: dict[str, tuple[Reply, type[Exception], str]] = {
    "a page": (Reply(b"<html>", 200, {"Content-Type": "text/html"}), BadSource, "does not speak git's smart protocol"),
    "a dumb server": (Reply(b"", 200, {"Content-Type": "text/plain"}), BadSource, "smart protocol"),
    "nothing": (Reply(b"", 200, {"Content-Type": PKT}), Unreachable, "hung up"),
    "no lengths": (Reply(b"zzzz", 200, {"Content-Type": PKT}), BadSource, "git failed: .*zzzz"),
    "half a line": (Reply(b"00ff# service", 200, {"Content-Type": PKT}), BadSource, "git failed"),
    "another service": (Reply(b"001e# service=git-upload-evil\n0000", 200, {"Content-Type": PKT}), BadSource, ""),
    "not there": (Reply(b"", 404), BadSource, "there is no git repository"),
    "no longer there": (Reply(b"", 410), BadSource, "answered 410"),
    "overloaded": (Reply(b"", 503), Unreachable, "answered 503"),
}


@pytest.mark.parametrize(("reply", "error", "words"), NO_GIT.values(), ids=NO_GIT)
def test_what_is_no_git_server_is_said_so(web: FileServer, reply: Reply, error: type[Exception], words: str) -> None:
    web.serve_reply("/r/info/refs", reply)
    with pytest.raises(error, match=words or "/r"):
        clone(f"{web.url}/r")


# Bounds


def test_a_repository_over_the_limit_is_refused(repository: Repository) -> None:
    repository.commit({"large.yaml": b"x" * 300_000})
    with pytest.raises(BundleTooLarge, match=r"\.git: .*PRATIQUE_MAX_BUNDLE_MIB"):
        clone(repository, max_bytes=100_000)


def test_references_without_end_are_refused(web: FileServer) -> None:
    line = b"003f" + b"1" * 40 + b" refs/heads/" + b"x" * 6 + b"\n"
    endless = (line * 1000 for _ in range(10_000))
    body = itertools.chain([b"001e# service=git-upload-pack\n0000"], endless)
    web.serve_reply("/r/info/refs", Reply(body, 200, {"Content-Type": PKT}))
    with pytest.raises(BundleTooLarge, match="sends more than 1000000 bytes"):
        clone(f"{web.url}/r", max_bytes=1_000_000)


def test_a_git_server_that_drips_is_left_at_the_deadline(speaker: Callable[[Callable[..., None]], str]) -> None:
    is_over = threading.Event()

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {PKT}\r\n\r\n001e# ".encode())
        for _ in range(6000):  # minutes, if nobody leaves
            if is_over.wait(0.05):
                return
            connection.sendall(b"s")
        is_over.set()

    with pytest.raises(Unreachable, match="not finished within 1 s"):
        clone(f"http://{speaker(talk)}/r", egress=HASTY)
    assert not is_over.is_set(), "the client left before the last drop"
    is_over.set()


def test_a_tree_that_stands_in_itself_a_thousand_million_times_is_not_walked(repository: Repository) -> None:
    tree = repository.git("mktree", stdin=b"").decode().strip()
    for _ in range(9):
        lines = "".join(f"040000 tree {tree}\tf{number}\n" for number in range(10))
        tree = repository.git("mktree", stdin=lines.encode()).decode().strip()
    commit = repository.git("commit-tree", "-m", "bomb", tree).decode().strip()
    repository.point("refs/heads/main", commit)
    with pytest.raises(BundleTooLarge, match="more than 200000 files and folders"):
        clone(repository)


def test_a_file_that_stands_in_a_tree_many_times_counts_each_time(repository: Repository) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"x" * 100_000).decode().strip()
    lines = "".join(f"100644 blob {blob}\tf{number}.yaml\n" for number in range(100))
    tree = repository.git("mktree", stdin=lines.encode()).decode().strip()
    repository.point("refs/heads/main", repository.git("commit-tree", "-m", "many", tree).decode().strip())
    with pytest.raises(BundleTooLarge, match="more than 5000000 bytes of files"):
        clone(repository, max_bytes=5_000_000)


def test_a_pin_of_another_commit_is_never_answered_with_the_branch(repository: Repository) -> None:
    repository.commit(FILES)
    wrong = Pin("git", repository.url, "0123456789" * 4)
    with pytest.raises((BadSource, DigestMismatch)):
        clone(repository, pin=wrong)
