"""A whole real Kubernetes on loopback: etcd, API server, controller manager, scheduler, and kwok for nodes and pods.

Everything is what it is in production but the containers: kwok says of a pod that it runs, and nothing runs. etcd
listens on loopback without a password, so this is for tests and for trying things, on a machine you do not share.
"""

from __future__ import annotations

import base64
import csv
import secrets
import shutil
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.kubernetes.endpoint import USERS, Endpoint, Refused, User
from tests.support.servers import process

START_SECONDS = 120.0
START_TRIES = 3
AUDIENCES = "https://kubernetes.default.svc,pratique"
NODE = "node-1"
COMPONENTS = (
    User("system:kube-controller-manager", (), "the controller manager"),
    User("system:kube-scheduler", (), "the scheduler"),
    User("kwok", ("system:masters",), "plays the kubelet"),
)
# ASN.1 of a P-256 private key around its 32 bytes (RFC 5915; the public half is optional and left out).
EC_KEY_HEAD = bytes.fromhex("30310201010420")
EC_KEY_TAIL = bytes.fromhex("a00a06082a8648ce3d030107")


class ControlPlane:
    """One control plane; `stop()` (or leaving the `with` block, or the end of the process) ends all of it.

    `binaries` is the folder that `tests/controlplane/build` prints. `state` keeps etcd, keys, tokens and the port for
    the next start; without it everything lies in a temporary folder that goes with the control plane. The logs of the
    components lie in `logs`. `options` are flags of the API server. Start it from a thread that lives as long as the control plane shall.
    """

    def __init__(
        self, binaries: Path, state: Path | None = None, logs: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        self._binaries = binaries
        self._is_kept = state is not None
        self.state = state.resolve() if state is not None else process.private_folder("controlplane")
        self.logs = logs.resolve() if logs is not None else self.state / "logs"
        self._options = tuple(options)
        self._servers: dict[str, process.Server] = {}
        self._etcd_port = self._etcd_peer_port = self._port = 0
        self._tokens: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca_pem(self) -> str:
        """The certificate authority that the API server made for itself: the last one in its own chain."""
        chain = (self._pki / "apiserver.crt").read_text()
        return chain[chain.rindex("-----BEGIN CERTIFICATE-----") :]

    @property
    def kubectl(self) -> Path:
        return self._binaries / "kubectl"

    @property
    def endpoint(self) -> Endpoint:
        """Everything a client needs; stays true however often API server and etcd are stopped and started."""
        return Endpoint(self.server, self.ca_pem, self.kubectl, self._tokens)

    def kubeconfig(self, user: str) -> str:
        """A kubeconfig (YAML, certificate and token inline) for one of USERS."""
        return self.endpoint.kubeconfig(user)

    def start(self) -> None:
        """Start everything and return when pods can be scheduled and controllers work.

        Raises ServiceFailed with the log of the component at fault; nothing is left running then.
        """
        for folder in (self.state, self._pki, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._write_identities()
        try:
            self._start_store_and_server()
            self._start_controllers()
            self._wait_until_usable()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every component, etcd last; does nothing the second time."""
        for name in sorted(self._servers, key=lambda name: name == "etcd"):
            # All but etcd keep nothing, and a polite end takes the API server as long as its longest watch.
            self._servers.pop(name).stop(hard=name != "etcd" or not self._is_kept)
        if not self._is_kept:
            shutil.rmtree(self.state, ignore_errors=True)

    def restart_apiserver(self) -> None:
        """End the API server without warning and start it again on the same port, with everything as it was."""
        self.stop_apiserver(hard=True)
        self.start_apiserver()

    def stop_apiserver(self, *, hard: bool) -> None:
        """Stop the API server alone, politely or (`hard`) without warning; the others wait for it to come back."""
        self._servers.pop("kube-apiserver").stop(hard=hard)

    def start_apiserver(self) -> None:
        """Start the stopped API server again on the same port; returns when it is ready."""
        self._start_apiserver()

    def stop_store(self) -> None:
        """End etcd alone and without warning, as a crash does."""
        self._servers.pop("etcd").stop(hard=True)

    def start_store(self) -> None:
        """Start the stopped etcd again on the same port and data; returns when the API server is ready again."""
        self._start_etcd()
        self._servers["kube-apiserver"].wait(self._is_ready, START_SECONDS)

    @property
    def _pki(self) -> Path:
        return self.state / "pki"

    def _write_identities(self) -> None:
        """Make the signing key of ServiceAccount tokens and the users' tokens, or take those of the last start."""
        key = self._pki / "serviceaccounts.key"
        if not key.exists():
            der = EC_KEY_HEAD + (secrets.randbits(255) or 1).to_bytes(32, "big") + EC_KEY_TAIL
            body = base64.encodebytes(der).decode()
            _write_private(key, f"-----BEGIN EC PRIVATE KEY-----\n{body}-----END EC PRIVATE KEY-----\n")
        users = (*USERS, *COMPONENTS)
        tokens = self._pki / "tokens.csv"
        known = {row[1]: row[0] for row in csv.reader(tokens.open())} if tokens.exists() else {}
        self._tokens = {user.name: known.get(user.name) or secrets.token_urlsafe(32) for user in users}
        _write_private(tokens, "")
        with tokens.open("w", newline="") as file:
            # An empty fourth column would be a group without a name.
            csv.writer(file).writerows(
                [self._tokens[user.name], user.name, user.uid, *([",".join(user.groups)] if user.groups else [])]
                for user in users
            )

    def _start_store_and_server(self) -> None:
        """Start etcd and the API server; other ports are tried where somebody took one meanwhile."""
        for left in reversed(range(START_TRIES)):
            self._choose_ports()
            try:
                self._start_etcd()
                self._start_apiserver()
            except process.ServiceFailed as exc:
                if not left or "address already in use" not in str(exc):
                    raise
                for name in list(self._servers):
                    self._servers.pop(name).stop(hard=True)
            else:
                (self.state / "port").write_text(str(self._port))
                return

    def _choose_ports(self) -> None:
        self._etcd_port, self._etcd_peer_port, self._port = process.free_ports(3)
        last = self.state / "port"
        if last.exists() and process.is_free(int(last.read_text())):
            self._port = int(last.read_text())

    def _run(self, name: str, arguments: Sequence[str]) -> process.Server:
        server = process.Server(name, [self._binaries / name, *arguments], self.logs / f"{name}.log")
        self._servers[name] = server
        return server

    def _start_etcd(self) -> None:
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._etcd_peer_port}"
        etcd = self._run("etcd", [
            f"--data-dir={self.state / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
        ])  # fmt: skip
        etcd.wait(lambda: process.answers_on(self._etcd_port), START_SECONDS)

    def _start_apiserver(self) -> None:
        key = self._pki / "serviceaccounts.key"
        apiserver = self._run("kube-apiserver", [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}", f"--cert-dir={self._pki}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={self._port}",
            # There is no other node that would have to find the API server, and a loopback endpoint is refused.
            "--endpoint-reconciler-type=none",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            # `pratique` among them lets the users of the token file pass a TokenReview for that audience.
            "--service-account-issuer=https://kubernetes.default.svc", f"--api-audiences={AUDIENCES}",
            f"--token-auth-file={self._pki / 'tokens.csv'}", "--authorization-mode=RBAC", "--allow-privileged=true",
            "--service-cluster-ip-range=10.96.0.0/16", "--runtime-config=api/all=true",
            *self._options,
        ])  # fmt: skip
        apiserver.wait(self._is_ready, START_SECONDS)

    def _is_ready(self) -> bool:
        try:
            return bool(self.endpoint.ask("GET", "/readyz") == "ok")
        except (OSError, Refused, ValueError, ssl.SSLError):  # not there yet: no certificate, no listener, not ready
            return False

    def _kubeconfig_file(self, user: User) -> str:
        path = self._pki / f"{user.name.removeprefix('system:')}.kubeconfig"
        _write_private(path, self.endpoint.kubeconfig(user.name))
        return str(path)

    def _start_controllers(self) -> None:
        manager, scheduler, kubelet = (self._kubeconfig_file(user) for user in COMPONENTS)
        authority = self._pki / "ca.crt"
        authority.write_text(self.ca_pem)
        self._run("kube-controller-manager", [
            f"--kubeconfig={manager}", f"--service-account-private-key-file={self._pki / 'serviceaccounts.key'}",
            f"--root-ca-file={authority}", "--use-service-account-credentials", "--leader-elect=false",
            # The node sends no heartbeat that a busy machine could delay.
            "--secure-port=0", "--node-monitor-grace-period=24h", "--kube-api-qps=200", "--kube-api-burst=400",
        ])  # fmt: skip
        self._run("kube-scheduler", [f"--kubeconfig={scheduler}", "--leader-elect=false", "--secure-port=0"])
        self._run("kwok", [
            f"--kubeconfig={kubelet}", "--manage-all-nodes=true", f"--config={self._binaries / 'kwok.yaml'}",
            "--cidr=10.64.0.0/12", "--node-ip=10.0.0.1",
        ])  # fmt: skip
        self._register_node()

    def _register_node(self) -> None:
        room = {"cpu": "32", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"}
        labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node: Mapping[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"capacity": room, "allocatable": room},
        }
        try:
            self.endpoint.ask("POST", "/api/v1/nodes", node)
        except Refused as exc:
            if exc.status != 409:  # it is there from the last start
                raise

    def _wait_until_usable(self) -> None:
        for name, is_so in (
            ("kube-controller-manager", lambda: self._exists("/api/v1/namespaces/default/serviceaccounts/default")),
            ("kube-controller-manager", lambda: self._exists("/api/v1/namespaces/kube-system/serviceaccounts/default")),
            ("kwok", self._is_node_ready),
        ):
            self._servers[name].wait(is_so, START_SECONDS)
        dead = [server for server in self._servers.values() if not server.is_running()]
        if dead:
            raise process.ServiceFailed(f"{dead[0].name} died; its log ends:\n{dead[0].log_tail()}")

    def _exists(self, path: str) -> bool:
        try:
            self.endpoint.ask("GET", path)
        except Refused as exc:
            if exc.status == 404:
                return False
            raise
        return True

    def _is_node_ready(self) -> bool:
        node = self.endpoint.ask("GET", f"/api/v1/nodes/{NODE}")
        conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions", ())}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
