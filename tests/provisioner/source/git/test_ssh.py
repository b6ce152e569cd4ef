"""Git over ssh: the real ssh program against a real server, and every way in which the two do not agree."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator

import pytest

from provisioner.errors import BadSource, SourceUnavailable, Unreachable
from provisioner.source import Credentials, Fetched, GitSource, fetch, poll
from provisioner.unpack import unpack
from tests.provisioner.source.git.sshd import Key, SshServer, locked_key, ssh_server
from tests.provisioner.source.places import MIB, OPEN
from tests.support.servers.http import GitServer, Repository

FILES = {"deploy/a.yaml": "kind: A\n"}


@pytest.fixture(scope="module")
def server() -> Iterator[SshServer]:
    with ssh_server() as made:
        yield made


@pytest.fixture(scope="module")
def repository(git_server: GitServer) -> Repository:
    made = git_server.repository("over-ssh")
    made.commit(FILES)
    return made


def given(server: SshServer, *, key: str = "", known_hosts: str = "") -> Credentials:
    return Credentials(
        server.host, ssh_private_key=key or server.user.text, ssh_known_hosts=known_hosts or server.known_hosts()
    )


def get(server: SshServer, path: object, credentials: Credentials, **named: str) -> Fetched:
    source = GitSource(f"ssh://git@{server.host}{path}", **(named or {"branch": "main"}), credentials=credentials)
    return fetch(source, egress=OPEN, max_bytes=MIB)


def refusal(server: SshServer, path: object, credentials: Credentials) -> str:
    with pytest.raises(BadSource) as caught:
        get(server, path, credentials)
    words = str(caught.value).replace(str(path), "")
    assert not any(word in words for word in (tempfile.gettempdir(), "pratique-ssh-", "PRIVATE KEY", "AAAA"))
    return words


def test_a_key_and_the_known_host_open_a_repository(server: SshServer, repository: Repository) -> None:
    fetched = get(server, repository.path, given(server))
    assert unpack(fetched.archives).files == {path: text.encode() for path, text in FILES.items()}
    assert fetched.pin.digest == repository.resolve("main")
    assert get(server, repository.path, given(server), commit=fetched.pin.digest).pin.digest == fetched.pin.digest


WRONG: dict[str, tuple[Callable[[SshServer], Credentials], str]] = {
    "the host shows another key": (
        lambda server: given(server, known_hosts=server.known_hosts(Key())),
        "the host shows another key than known_hosts has",
    ),
    "the host is not among the known": (
        lambda server: given(server, known_hosts=f"git.example {Key().line}"),
        "known_hosts has no key of this host",
    ),
    "the known hosts are nonsense": (
        lambda server: given(server, known_hosts="what is this"),
        "known_hosts has no key of this host",
    ),
    "another user's key": (lambda server: given(server, key=Key().text), "the host does not accept the private key"),
    "a key with a passphrase": (
        lambda server: given(server, key=locked_key("sesame")),
        "the private key has a passphrase",
    ),
    "a key that is none": (lambda server: given(server, key="open sesame"), "the private key cannot be read"),
    "a key that is cut off": (
        lambda server: given(server, key=server.user.text[:200]),
        "the private key cannot be read",
    ),
}


@pytest.mark.parametrize(("credentials", "words"), WRONG.values(), ids=WRONG)
def test_keys_that_do_not_fit_are_never_tried_again(
    server: SshServer, repository: Repository, credentials: Callable[[SshServer], Credentials], words: str
) -> None:
    before = len(server.commands)
    assert words in refusal(server, repository.path, credentials(server))
    assert len(server.commands) == before


def test_a_repository_that_is_not_there_is_said(server: SshServer, repository: Repository) -> None:
    assert "there is no git repository" in refusal(server, f"{repository.path}-not", given(server))


def test_nobody_listening_is_tried_later_and_shows_no_path(server: SshServer) -> None:
    credentials = Credentials("127.0.0.1", ssh_private_key=server.user.text, ssh_known_hosts=server.known_hosts())
    with pytest.raises(Unreachable, match="Connection refused") as caught:
        fetch(
            GitSource("ssh://git@127.0.0.1:1/x.git", branch="main"), egress=OPEN, credentials=credentials, max_bytes=MIB
        )
    assert tempfile.gettempdir() not in str(caught.value)


def test_a_branch_is_polled_over_ssh_with_the_same_key_and_the_same_refusals(
    server: SshServer, repository: Repository
) -> None:
    def see(credentials: Credentials, branch: str = "main") -> str:
        source = GitSource(f"ssh://git@{server.host}{repository.path}", branch=branch, credentials=credentials)
        return poll(source, egress=OPEN, max_bytes=MIB).digest

    assert see(given(server)) == repository.resolve("main")
    moved = repository.commit(FILES, branch="moves")
    assert see(given(server), "moves") == moved
    with pytest.raises(SourceUnavailable, match="has no refs/heads/gone"):
        see(given(server), "gone")
    with pytest.raises(BadSource, match="the host does not accept the private key"):
        see(given(server, key=Key().text))
    with pytest.raises(BadSource, match="the host shows another key"):
        see(given(server, known_hosts=server.known_hosts(Key())))
