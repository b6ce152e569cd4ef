"""A real OCI registry (Debian's docker-registry) on loopback, and a small client that pushes what tests need."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import ssl
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from tests.support.patience import scaled
from tests.support.servers.http import Authority
from tests.support.servers.process import Server, free_port

CREDENTIALS = ("puller", "open sesame")
# bcrypt of the password above: the one form that the registry reads, and the standard library cannot make it.
HTPASSWD = "puller:$2b$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that the registry holds, as a manifest names them."""

    media_type: str
    digest: str
    size: int

    def descriptor(self) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


def layer_of(files: Mapping[str, bytes | str]) -> bytes:
    """A tar.gz of regular files in the order of their paths, the same bytes on every run."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(files.items()):
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=0)


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Registry:
    """`host` is what stands before the repository in a reference; plain http without `tls`. Made by `start`."""

    def __init__(
        self,
        server: Server,
        host: str,
        storage: Path,
        credentials: tuple[str, str] | None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._server = server
        self._storage = storage
        self.host = host
        self.url = f"{'https' if tls else 'http'}://{host}"
        self.credentials = credentials
        auth = urllib3.make_headers(basic_auth=":".join(credentials)) if credentials else {}
        self._http = urllib3.PoolManager(headers=dict(auth), retries=False, timeout=scaled(60), ssl_context=tls)

    @classmethod
    def start(
        cls, program: str, folder: Path, *, with_auth: bool = False, tls: Authority | None = None, clients: str = ""
    ) -> Registry:
        """Start `program` with everything it keeps in `folder`; raises ServiceFailed.

        With `tls` only for clients that show a certificate of an authority in `clients` (PEM), if any; that of the
        server itself has to be one.
        """
        host = f"127.0.0.1:{free_port()}"
        storage = folder / "storage"
        config: dict[str, Any] = {
            "version": "0.1",
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(storage)}, "delete": {"enabled": True}},
            "http": {"addr": host},
        }
        if with_auth:
            (folder / "htpasswd").write_text(HTPASSWD)
            config["auth"] = {"htpasswd": {"realm": "registry", "path": str(folder / "htpasswd")}}
        if tls is not None:
            config["http"]["tls"] = {"certificate": str(tls.chain_file), "key": str(tls.key_file)}
            if clients:
                (folder / "clients.crt").write_text(clients)
                config["http"]["tls"]["clientcas"] = [str(folder / "clients.crt")]
        (folder / "config.yml").write_text(json.dumps(config))
        server = Server("docker-registry", [program, "serve", folder / "config.yml"], folder / "registry.log")
        made = cls(server, host, storage, CREDENTIALS if with_auth else None, _context(tls) if tls else None)
        server.wait(made._answers)
        return made

    def stop(self) -> None:
        self._http.clear()
        self._server.stop()

    def push(
        self,
        ref: str,
        files: Mapping[str, bytes | str],
        *,
        layers: Sequence[bytes] = (),
        tag: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        """Push an image and return the digest of its manifest.

        `ref` is `repository` or `repository:tag` (with or without the host); the tag defaults to `latest`. Its layers
        are `layers` (tar.gz bytes, sent as they are) and then one that holds `files`, if there are any.
        """
        repository, named = self._split(ref)
        blobs = [*layers, layer_of(files)] if files else list(layers)
        sent = [self.push_blob(repository, blob, LAYER_TYPE) for blob in blobs]
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": dict(labels or {})},
            "rootfs": {"type": "layers", "diff_ids": [_diff_id(blob) for blob in blobs]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": self.push_blob(repository, json.dumps(config).encode(), CONFIG_TYPE).descriptor(),
            "layers": [blob.descriptor() for blob in sent],
            **({"annotations": dict(annotations)} if annotations else {}),
        }
        return self.push_manifest(repository, tag or named, manifest)

    def push_index(self, ref: str, platforms: Mapping[str, str]) -> str:
        """Push a manifest list of images of the same repository, `{"linux/amd64": digest}`; returns its digest."""
        repository, tag = self._split(ref)
        entries = []
        for platform, digest in platforms.items():
            system, _, architecture = platform.partition("/")
            content = self.manifest(repository, digest)
            blob = Blob(MANIFEST_TYPE, digest, len(content))
            entries.append({**blob.descriptor(), "platform": {"os": system, "architecture": architecture}})
        return self.push_manifest(repository, tag, {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries})

    def push_blob(self, repository: str, content: bytes, media_type: str) -> Blob:
        """Upload `content` in one piece."""
        begun = self._ask("POST", f"/v2/{repository}/blobs/uploads/", 202)
        digest = digest_of(content)
        location = begun.headers["Location"]
        joint = "&" if "?" in location else "?"
        self._ask(
            "PUT", f"{location}{joint}digest={digest}", 201, content, {"Content-Type": "application/octet-stream"}
        )
        return Blob(media_type, digest, len(content))

    def push_manifest(self, repository: str, tag: str, manifest: Mapping[str, Any]) -> str:
        """Store `manifest` (with a mediaType) under `tag`, moving the tag if it exists; returns the digest."""
        content = json.dumps(manifest).encode()
        path = f"/v2/{repository}/manifests/{tag}"
        answer = self._ask("PUT", path, 201, content, {"Content-Type": manifest["mediaType"]})
        return str(answer.headers["Docker-Content-Digest"])

    def manifest(self, repository: str, reference: str) -> bytes:
        """The bytes of a manifest, by tag or digest."""
        accept = {"Accept": f"{MANIFEST_TYPE}, {INDEX_TYPE}"}
        return self._ask("GET", f"/v2/{repository}/manifests/{reference}", 200, None, accept).data

    def tamper(self, digest: str, content: bytes) -> None:
        """Put other bytes in the place of a stored blob or manifest, as a broken or hostile registry would."""
        name = digest.removeprefix("sha256:")
        (self._storage / "docker/registry/v2/blobs/sha256" / name[:2] / name / "data").write_bytes(content)

    def _split(self, ref: str) -> tuple[str, str]:
        repository, _, tag = ref.removeprefix(f"{self.host}/").partition(":")
        return repository, tag or "latest"

    def _answers(self) -> bool:
        try:
            return self._http.request("GET", f"{self.url}/v2/").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def _ask(
        self, method: str, path: str, expected: int, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        url = path if path.startswith("http") else self.url + path
        answer = self._http.request(method, url, body=body, headers={**self._http.headers, **(headers or {})})
        if answer.status != expected:
            raise RuntimeError(f"{method} {url}: {answer.status} {answer.data.decode(errors='replace')}")
        return answer


def _context(tls: Authority) -> ssl.SSLContext:
    """Ours for pushing: the server's own certificate says who we are."""
    context = ssl.create_default_context(cadata=tls.ca_pem)
    context.load_cert_chain(tls.chain_file, tls.key_file)
    return context


def _diff_id(blob: bytes) -> str:
    """Digest of the layer's tar; of its own bytes where a test pushes something that is no gzip."""
    try:
        return digest_of(gzip.decompress(blob))
    except (OSError, EOFError):
        return digest_of(blob)
