"""How to reach a control plane: its address, its certificate, its fixed users and their tokens.

A value without a process behind it, so that every worker of a test run can have one for the same control plane.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.patience import scaled

TIMEOUT_SECONDS = 60
NAME = "pratique"


@dataclass(frozen=True, slots=True)
class User:
    """One line of the API server's token file; `meaning` is for people who try the cluster by hand."""

    name: str
    groups: tuple[str, ...]
    meaning: str

    @property
    def uid(self) -> str:
        return f"uid-{self.name}"


# No rights come with these but admin's: who needs one binds it.
USERS = (
    User("admin", ("system:masters",), "may do everything"),
    User("alice", ("platform",), "platform team"),
    User("bob", ("platform",), "platform team"),
    User("carol", ("developers",), "developer"),
    User("rita", ("requesters",), "asks for deployments"),
    User("mallory", (), "belongs to no group"),
    User("pratique", (), "the service itself"),
)


class Refused(Exception):
    """The API server answered with an HTTP error; `status` is its code."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status}: {words}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`server` is the https URL, `tokens` maps the name of each user to the bearer token."""

    server: str
    ca_pem: str
    kubectl: Path
    tokens: Mapping[str, str]

    @classmethod
    def read(cls, kubeconfig: Path, kubectl: Path) -> Endpoint:
        """The endpoint that `write` put into `kubeconfig`."""
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        return cls(
            server=cluster["server"],
            ca_pem=base64.b64decode(cluster["certificate-authority-data"]).decode(),
            kubectl=kubectl,
            tokens={entry["name"]: entry["user"]["token"] for entry in config["users"]},
        )

    def write(self, kubeconfig: Path) -> None:
        """Write a kubeconfig with one context per fixed user (current: admin), whole or not at all."""
        scratch = kubeconfig.with_name(f".{kubeconfig.name}.new")
        scratch.touch(mode=0o600)
        scratch.write_text(self._config([user.name for user in USERS]))
        scratch.replace(kubeconfig)

    def kubeconfig(self, user: str) -> str:
        """A kubeconfig (YAML) that holds `user` alone, with certificate and token inline; KeyError for a stranger."""
        return self._config([user])

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, user: str = "admin") -> Any:
        """Send one JSON request as `user` and return the JSON answer, or its text.

        Raises Refused for an HTTP error, OSError where nobody answers.
        """
        request = urllib.request.Request(
            self.server + path,
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {self.tokens[user]}", "Content-Type": "application/json"},
        )
        context = ssl.create_default_context(cadata=self.ca_pem)
        try:
            with urllib.request.urlopen(request, timeout=scaled(TIMEOUT_SECONDS), context=context) as answer:
                text = answer.read()
                is_json = answer.headers.get_content_type() == "application/json"
        except urllib.error.HTTPError as exc:
            raise Refused(exc.code, exc.read().decode(errors="replace")) from exc
        return json.loads(text) if is_json else text.decode()

    def _config(self, users: Iterable[str]) -> str:
        names = list(users)
        authority = base64.b64encode(self.ca_pem.encode()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": {"server": self.server, "certificate-authority-data": authority}}],
            "users": [{"name": name, "user": {"token": self.tokens[name]}} for name in names],
            "contexts": [{"name": name, "context": {"cluster": NAME, "user": name}} for name in names],
            "current-context": names[0],
        }
        return yaml.safe_dump(config, sort_keys=False)
