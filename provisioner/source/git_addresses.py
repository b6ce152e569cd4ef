"""Where a git repository is, by what people write for it."""

from __future__ import annotations

import re

from provisioner.source.egress import Origin, pinned_url, place_of, shown

# git@example.com:group/repository.git, as hosts show it for cloning.
SCP_LIKE = re.compile(r"(?P<user>[\w.-]+)@(?P<host>[A-Za-z0-9.-]+):(?P<path>[^/:][^:]*)")


def shown_repository(repository: str) -> str:
    """The repository for messages and pages, as `shown`."""
    return repository if SCP_LIKE.fullmatch(repository) else shown(repository)


def pinned_repository(repository: str) -> str:
    """The repository without credentials, as `pinned_url`."""
    return repository if SCP_LIKE.fullmatch(repository) else pinned_url(repository)


def place_of_repository(repository: str) -> Origin:
    """Where the repository is: what its credentials belong to. Raises BadSource for a URL that is not fetched from."""
    return place_of(url_of_repository(repository), ("https", "http", "ssh"))


def url_of_repository(repository: str) -> str:
    """The URL that a repository means that is written as for ssh."""
    scp = SCP_LIKE.fullmatch(repository)
    return f"ssh://{scp['user']}@{scp['host']}/{scp['path']}" if scp else repository
