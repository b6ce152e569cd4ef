"""Git servers other than git's own: dulwich's, which serves only clients that say they take thin packs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from dulwich.repo import Repo
from dulwich.server import DictBackend
from dulwich.web import make_wsgi_chain

from provisioner.source import GitSource, fetch
from provisioner.unpack import unpack
from tests.support.servers.hostile import HERE, MAX
from tests.support.servers.http import GitServer, Repository

FILES = {"deploy/a.yaml": b"kind: A\n", "deploy/b.yaml": b"kind: B\n" * 200}


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def repository(git_server: GitServer) -> Repository:
    return git_server.repository("served-by-dulwich")


@pytest.fixture
def url(repository: Repository) -> Iterator[str]:
    with Repo(str(repository.path)) as repo:
        app = make_wsgi_chain(DictBackend({"/": repo}))
        with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}/"
            server.shutdown()
            thread.join()


def test_dulwichs_own_server_is_fetched_from(repository: Repository, url: str) -> None:
    repository.commit({"deploy/b.yaml": b"kind: B\n" * 199})
    commit = repository.commit(FILES)
    found = fetch(GitSource(url, branch="main", directory="deploy"), egress=HERE, max_bytes=MAX)
    assert found.pin.digest == commit
    assert unpack(found.archives).files == {path.removeprefix("deploy/"): data for path, data in FILES.items()}
    again = fetch(GitSource(url, commit=commit), egress=HERE, max_bytes=MAX)
    assert unpack(again.archives).files == FILES
