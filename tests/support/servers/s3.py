"""An S3 server of our own, versitygw over a folder, and a wire to it that can be listened to, held and cut."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from approvals.buckets.location import Location
from tests.support.patience import scaled
from tests.support.servers.process import Options, Server, free_port

ACCESS, SECRET = "the-operator", "a secret of the operator, for tests only"
REGION = "eu-test-1"
# AWS's own places for credentials, so that nothing of whoever runs the tests is found.
AWS = {
    "AWS_ACCESS_KEY_ID": ACCESS,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
PREFIX = "pratique/contents/"
PIECE = 64 * 1024
_numbers = itertools.count(1)


class S3Server:
    """`url`; the objects of a bucket are files below `folder`, and their metadata lies elsewhere."""

    def __init__(self, program: Path, folder: Path):
        self.folder = folder / "buckets"
        self.url = f"http://127.0.0.1:{free_port()}"
        for name in ("buckets", "metadata", "people"):
            (folder / name).mkdir()
        command = [program, "--quiet", "--port", self.url.removeprefix("http://"), "--region", REGION]
        command += ["--iam-dir", folder / "people", "--access", ACCESS, "--secret", SECRET]
        command += ["posix", "--sidecar", folder / "metadata", self.folder]
        self._server = Server("versitygw", command, folder / "versitygw.log", Options(env={"HOME": str(folder)}))
        self._program = program
        self.client = self.client_of(ACCESS, SECRET)
        self._server.wait(self._answers)

    def client_of(self, access: str, secret: str) -> Any:
        config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
        session = boto3.session.Session(aws_access_key_id=access, aws_secret_access_key=secret, region_name=REGION)
        return session.client("s3", endpoint_url=self.url, config=config)

    def bucket(self, *, url: str = "", prefix: str = PREFIX) -> Location:
        """A new one, reached at this server or at a wire to it."""
        name = f"bucket-{os.getpid()}-{next(_numbers)}"
        self.client.create_bucket(Bucket=name)
        return Location(name, prefix, url or self.url, REGION, is_path_style=True)

    def files_of(self, location: Location) -> Path:
        """The folder in which the objects below the prefix are files of their names."""
        return self.folder / location.bucket / location.prefix

    def uploads(self, location: Location) -> list[str]:
        """The keys of uploads that have begun and not ended."""
        found = self.client.list_multipart_uploads(Bucket=location.bucket)
        return [one["Key"] for one in found.get("Uploads", ())]

    def person(self) -> dict[str, str]:
        """Somebody without rights: the environment of AWS that a process is them with."""
        name, secret = f"person-{next(_numbers)}", "a secret of their own"
        command = [self._program, "admin", "--access", ACCESS, "--secret", SECRET, "--region", REGION]
        command += ["--endpoint-url", self.url, "create-user", "--access", name, "--secret", secret, "--role", "user"]
        subprocess.run(command, check=True, capture_output=True, timeout=scaled(60))
        return {**AWS, "AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": secret}

    def allow(self, location: Location, person: Mapping[str, str], statements: Iterable[Mapping[str, Any]]) -> None:
        """Give a person these statements of a policy as the operating manual has them, and no other."""
        principal = {"AWS": [person["AWS_ACCESS_KEY_ID"]]}
        policy = {"Version": "2012-10-17", "Statement": [{**one, "Principal": principal} for one in statements]}
        self.client.put_bucket_policy(Bucket=location.bucket, Policy=json.dumps(policy))

    def everything(self) -> bytes:
        """All bytes that the server keeps, temporary ones as well."""
        return b"".join(path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file())

    def stop(self) -> None:
        self._server.stop()

    def _answers(self) -> bool:
        try:
            self.client.list_buckets()
        except BotoCoreError:
            return False
        return True


def settings_of(location: Location) -> dict[str, str]:
    """What a process needs in its environment to keep its contents there."""
    return {
        **AWS,
        "PRATIQUE_CONTENT_S3_BUCKET": location.bucket,
        "PRATIQUE_CONTENT_S3_PREFIX": location.prefix,
        "PRATIQUE_CONTENT_S3_ENDPOINT": location.endpoint,
        "PRATIQUE_CONTENT_S3_REGION": location.region,
        "PRATIQUE_CONTENT_S3_PATH_STYLE": "true",
    }


@dataclass
class Wire:
    """A way to `there` (a URL) that lets everything through until it is told otherwise.

    After `hold_up` bytes towards the server nothing more goes that way; after `cut_down` bytes towards the client the
    connection ends. `sent` is all that went to the server.
    """

    there: str
    hold_up: int | None = None
    cut_down: int | None = None
    sent: bytearray = field(default_factory=bytearray)
    is_holding: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        host, _, port = self.there.removeprefix("http://").partition(":")
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection((host, int(port)))
                self._open += [near, far]
                threading.Thread(target=self._up, args=(near, far), daemon=True).start()
                threading.Thread(target=self._down, args=(far, near), daemon=True).start()

    def _up(self, near: socket.socket, far: socket.socket) -> None:
        for data in _read(near):
            if self.hold_up is not None and len(self.sent) + len(data) > self.hold_up:
                self.is_holding.set()
                return  # both ends stay open, and nothing comes any more
            self.sent += data
            far.sendall(data)
        _end(far)

    def _down(self, far: socket.socket, near: socket.socket) -> None:
        passed = 0
        for data in _read(far):
            passed += len(data)
            if self.cut_down is not None and passed > self.cut_down:
                _end(near, far)
                return
            with contextlib.suppress(OSError):
                near.sendall(data)
        _end(near)


def _read(sock: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        while data := sock.recv(PIECE):
            yield data


def _end(*socks: socket.socket) -> None:
    for sock in socks:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def wait_until_held(wire: Wire, seconds: float = 60) -> None:
    assert wire.is_holding.wait(scaled(seconds)), f"{len(wire.sent)} bytes were sent, and nothing more"
