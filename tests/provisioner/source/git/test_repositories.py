"""Git over a real server: branches, tags and commits that are pinned, and everything in a tree that is no file."""

from __future__ import annotations

import hashlib
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import pytest

from provisioner.errors import BadSource, BundleTooLarge, ForbiddenAddress, Unreachable
from provisioner.source import Credentials, EgressPolicy, Fetched, GitSource, fetch
from provisioner.unpack import unpack
from provisioner.values import Pin
from tests.services.web import Asked, GitServer, Listening, Repository
from tests.services.web import Reply as Answer

from ..places import MIB, OPEN, STRICT

FILES = {"README.md": "hello\n", "deploy/a.yaml": "kind: A\n", "deploy/sub/b.yaml": "kind: B\n"}


def get(
    url: str, *, policy: EgressPolicy = OPEN, max_bytes: int = MIB, pin: Pin | None = None, **named: str
) -> Fetched:
    source = GitSource(url, destination="deps", **named)
    return fetch(source, egress=policy, max_bytes=max_bytes, pin=pin)


def files_of(fetched: Fetched) -> dict[str, bytes]:
    return dict(unpack(fetched.archives).files)


def encoded(files: dict[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


@pytest.fixture
def new(git_server: GitServer, request: pytest.FixtureRequest) -> Repository:
    """A repository of the test's own."""
    return git_server.repository(hashlib.sha1(request.node.nodeid.encode()).hexdigest())


@pytest.fixture
def listening() -> Iterator[Callable[[Callable[[Asked], Answer]], Listening]]:
    started: list[Listening] = []

    def start(answer: Callable[[Asked], Answer]) -> Listening:
        started.append(Listening(answer))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def test_a_pin_outlives_a_tag_that_moved(new: Repository) -> None:
    new.tag("v1", new.commit(FILES), message="first")
    source = GitSource(new.url, tag="v1")
    pin = fetch(source, egress=OPEN, max_bytes=MIB).pin
    new.tag("v1", new.commit({"new.yaml": "1"}), message="moved")
    assert files_of(fetch(source, egress=OPEN, max_bytes=MIB, pin=pin)) == encoded(FILES)


def test_a_branch_and_a_tag_of_one_name_are_told_apart(new: Repository) -> None:
    old = new.commit(FILES, branch="v1")
    new.point("refs/tags/v1", old)
    new.commit({"new.yaml": "1"}, branch="v1")
    tip = new.resolve("refs/heads/v1")
    assert (get(new.url, tag="v1").pin.digest, get(new.url, branch="v1").pin.digest) == (old, tip)


def test_a_repository_that_is_not_there_is_a_bad_source(git_server: GitServer) -> None:
    with pytest.raises(BadSource, match="there is no git repository"):
        get(f"{git_server.url}/nowhere.git", branch="main")


def test_an_empty_repository_has_no_branch(new: Repository) -> None:
    with pytest.raises(BadSource, match="has no refs/heads/main"):
        get(new.url, branch="main")


WRONG = {
    "nothing named": {},
    "two named": {"branch": "main", "tag": "v1"},
    "a short commit": {"commit": "abc1234"},
    "a commit in upper case": {"commit": "A" * 40},
    "a commit with a line break": {"commit": "a" * 40 + "\n"},
    "HEAD as commit": {"commit": "HEAD"},
    "an option": {"branch": "a b"},
    "a ref with control characters": {"branch": "a\0b"},
    "a glob": {"tag": "v*"},
    "a climbing folder": {"branch": "main", "directory": "../x"},
    "a folder that climbs inside": {"branch": "main", "directory": "a/../.."},
    "an absolute folder": {"branch": "main", "directory": "/etc"},
}


@pytest.mark.parametrize("named", WRONG.values(), ids=WRONG)
def test_a_source_that_is_wrongly_written_is_refused_before_anything_is_asked(named: dict[str, str]) -> None:
    with pytest.raises(BadSource):
        get("https://127.0.0.1:1/x.git", **named)


def tree_with(repository: Repository, mode: str, path: str, content: bytes) -> None:
    """Let main hold FILES and one entry of any mode."""
    repository.commit(FILES)
    if mode == "160000":
        name = "1" * 40
    else:
        name = repository.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
    tree = repository.git("ls-tree", "-r", "main") + f"{mode} blob {name}\t{path}\n".encode()
    for line in tree.replace(b"160000 blob", b"160000 commit").splitlines():
        head, _, where = line.partition(b"\t")
        kind, _, sha = head.decode().split(" ")
        repository.git("update-index", "--add", "--cacheinfo", f"{kind},{sha},{where.decode()}")
    written = repository.git("write-tree").decode().strip()
    repository.point("refs/heads/main", repository.git("commit-tree", "-m", "x", written).decode().strip())


def test_an_executable_is_a_file_like_any_other(new: Repository) -> None:
    tree_with(new, "100755", "deploy/run.yaml", b"kind: R\n")
    assert files_of(get(new.url, branch="main", directory="deploy"))["run.yaml"] == b"kind: R\n"


def test_a_pointer_of_git_lfs_is_refused_and_a_file_about_it_is_not(new: Repository) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12\n"
    new.commit({"about.yaml": f"# {pointer}"})
    assert get(new.url, branch="main").archives
    new.commit({"crds.yaml": pointer})
    with pytest.raises(BadSource, match=r"crds\.yaml is a Git LFS pointer"):
        get(new.url, branch="main")


class TestBounds:
    def test_a_pack_over_the_limit(self, new: Repository) -> None:
        noise = b"".join(hashlib.sha512(bytes([number % 256, number // 256])).digest() for number in range(20_000))
        new.commit({"noise.yaml": noise.hex()[:1_900_000]})
        with pytest.raises(BundleTooLarge, match=f"{new.url}: .*PRATIQUE_MAX_BUNDLE_MIB"):
            get(new.url, branch="main", max_bytes=500_000)

    def test_a_bomb_of_zeros_is_never_held(self, new: Repository) -> None:
        new.commit({"a.yaml": b"\0" * (64 * MIB)})
        tracemalloc.start()
        try:
            with pytest.raises(BundleTooLarge, match="PRATIQUE_MAX_BUNDLE_MIB"):
                get(new.url, branch="main")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 20 * MIB

    def test_a_long_history_does_not_come_along(self, new: Repository) -> None:
        noise = hashlib.sha512(b"x").hexdigest()
        for number in range(5):
            new.commit(
                {"a.yaml": "".join(hashlib.sha512(f"{number}{one}{noise}".encode()).hexdigest() for one in range(3000))}
            )
        assert len(get(new.url, branch="main", max_bytes=600_000).archives[0].data) < 500_000


class TestPlaces:
    def test_s18_a_redirect_inside_is_refused(self, listening) -> None:
        for target in ("http://169.254.169.254/", "http://localhost/", "file:///etc/passwd"):
            front = listening(lambda _, target=target: Answer(status=302, headers={"Location": target}))
            with pytest.raises(BadSource, match=r"another host|expected a URL"):
                get(f"{front.url}/x.git", branch="main")

    URLS = {
        "a file": "file:///etc",
        "a path": "/srv/git/x.git",
        "git's own protocol": "git://127.0.0.1/x.git",
        "an external program": "ext::sh -c touch% /tmp/owned",
        "a helper": "fd::17",
        "credentials": "https://user:hunter2@127.0.0.1/x.git",
        "an option": "--upload-pack=touch /tmp/owned",
        "an option as the ssh host": "ssh://-oProxyCommand=touch/x.git",
        "an option as the ssh user": "ssh://-oProxyCommand=touch@127.0.0.1/x.git",
        "a password over ssh": "ssh://git:hunter2@127.0.0.1/x.git",
        "a command in the ssh path": "ssh://git@127.0.0.1/x.git;touch",
    }

    @pytest.mark.parametrize("url", URLS.values(), ids=URLS)
    def test_other_ways_to_a_repository_are_refused(self, url: str) -> None:
        key = Credentials("127.0.0.1", ssh_private_key="key", ssh_known_hosts="hosts")
        with pytest.raises(BadSource) as caught:
            fetch(GitSource(url, branch="main"), egress=OPEN, credentials=key, max_bytes=MIB)
        assert "hunter2" not in str(caught.value)

    def test_ssh_needs_a_key_and_known_hosts_for_this_very_host(self) -> None:
        for url in ("ssh://git@git.example/x.git", "git@git.example:group/x.git"):
            for given, words in (
                (None, "needs a private key"),
                (Credentials("other.example", ssh_private_key="k", ssh_known_hosts="h"), "needs a private key"),
                (Credentials("git.example", ssh_private_key="k"), "needs the host's public key"),
            ):
                with pytest.raises(BadSource, match=words):
                    fetch(GitSource(url, branch="main"), egress=OPEN, credentials=given, max_bytes=MIB)

    def test_s18_ssh_is_refused_to_this_machine(self) -> None:
        key = Credentials("127.0.0.1", ssh_private_key="key", ssh_known_hosts="hosts")
        with pytest.raises(ForbiddenAddress):
            fetch(GitSource("ssh://git@127.0.0.1/x.git", branch="main"), egress=STRICT, credentials=key, max_bytes=MIB)


class TestServersThatMeanHarm:
    TYPE = {"Content-Type": "application/x-git-upload-pack-advertisement"}
    ANSWERS = {
        "a page": Answer(b"<html>login</html>", headers={"Content-Type": "text/html"}),
        "no type": Answer(b"0000"),
        "nothing": Answer(b"", headers=TYPE),
        "no packet": Answer(b"zzzz", headers=TYPE),
        "a packet that is cut off": Answer(b"00ff# service", headers=TYPE),
        "an error": Answer(b"001e# service=git-upload-pack\n0000000bERR no!", headers=TYPE),
        "the dumb protocol": Answer(b"1" * 40 + b"\trefs/heads/main\n", headers={"Content-Type": "text/plain"}),
        "only a flush": Answer(b"001e# service=git-upload-pack\n00000000", headers=TYPE),
        "refs that are none": Answer(b"001e# service=git-upload-pack\n0000000exyz refs\n0000", headers=TYPE),
    }

    @pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
    def test_nonsense_is_an_error_of_ours(self, listening, answer: Answer) -> None:
        server = listening(lambda _: answer)
        with pytest.raises((BadSource, Unreachable)) as caught:
            get(f"{server.url}/x.git?token=hunter2", branch="main")
        assert "hunter2" not in str(caught.value)

    def test_a_busy_one_is_tried_later(self, listening) -> None:
        server = listening(lambda _: Answer(status=503, headers={"Retry-After": "9"}))
        with pytest.raises(Unreachable, match="answered 503") as caught:
            get(f"{server.url}/x.git", branch="main")
        assert caught.value.retry_after_seconds == 9

    def test_an_encoding_that_was_not_asked_for_is_not_undone(self, listening) -> None:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = packer.compress(bytes(64 * MIB)) + packer.flush()
        server = listening(lambda _: Answer(bomb, headers={**self.TYPE, "Content-Encoding": "gzip"}))
        tracemalloc.start()
        try:
            with pytest.raises((BadSource, Unreachable, BundleTooLarge)):
                get(f"{server.url}/x.git", branch="main")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 20 * MIB
