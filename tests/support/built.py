"""Programs built from Go modules: those that results are held against, in tests/bench/peers/, and our own in deploy/."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.support.go import cache, find_go, wait_for

PEERS = Path(__file__).parents[1] / "bench/peers"
DEPLOY = Path(__file__).parents[2] / "deploy"
# Folders of deploy/ with a program of ours.
OWN_PROGRAMS = ("kustomize", "helm3")
BUILD_SECONDS = 1800
# Tests meet no public server, so conftest takes the authorities away; what a build downloads needs them.
CERT_FILE_OF_BUILDS = "PRATIQUE_TEST_CERT_FILE_OF_BUILDS"


def build_environment() -> dict[str, str]:
    """The environment of a build: that of the tests, with the machine's own authorities."""
    env = dict(os.environ)
    own = env.get(CERT_FILE_OF_BUILDS)
    if own is not None:
        env.pop("SSL_CERT_FILE", None)
    return env | ({"SSL_CERT_FILE": own} if own else {})


def built(peer: str, package: str = ".") -> Path | None:
    """The binary of peers/`peer`, built once into the user's cache (minutes); None where it cannot be had, said why."""
    go = shutil.which("go")
    if go is None:
        print(f"{peer}: there is no Go here")
        return None
    return built_from(PEERS / peer, package, go=go)


def built_own(folder: str) -> Path:
    """pratique-`folder`, built once into the user's cache (minutes), with the Go of a wheel if there is none here."""
    program = built_from(DEPLOY / folder, go=find_go(print))
    assert program is not None, f"deploy/{folder} could not be built"
    return program


def built_from(folder: Path, package: str = ".", *, go: str) -> Path | None:
    key = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.iterdir()))).hexdigest()[:16]
    made = cache() / f"{folder.name}-bench-{key}"
    made.parent.mkdir(parents=True, exist_ok=True)
    with made.with_suffix(".lock").open("w") as lock:
        wait_for(lock, print)
        if made.exists():
            return made
        scratch = made.with_name(f".{made.name}.{os.getpid()}")
        env = {**build_environment(), "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
        command = [go, "build", "-p", "2", "-trimpath", "-ldflags", "-s -w", "-o", str(scratch), package]
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
        )
        if done.returncode:
            print(f"{folder.name}: could not be built: {done.stderr.strip().splitlines()[-1:]}")
            return None
        scratch.rename(made)
        return made


if __name__ == "__main__":
    for name in OWN_PROGRAMS:
        built_own(name)
