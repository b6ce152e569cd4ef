"""The tokens that `kubectl pratique login` keeps: one file for each service, which only its owner may read."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from provisioner.cli.usage import Usage

OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Login:
    """A token for one service; `ends_at` is the service's word, such as 2026-11-25T21:00:00Z."""

    url: str
    token: str
    ends_at: str = ""

    def __repr__(self) -> str:
        return f"Login({self.url!r})"


def folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kubectl-pratique"


def keep(login: Login) -> Path:
    """Write it whole or not at all, for its owner from the first moment."""
    place = folder()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = _path(login.url)
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"url": login.url, "token": login.token, "endsAt": login.ends_at}, file)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    return path


def kept(url: str) -> Login | None:
    """The login for exactly this service. Raises Usage where others may read its file, or it is no such file."""
    path = _path(url)
    try:
        mode = path.stat().st_mode
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as exc:
        raise Usage(f"{path}: not a login that was kept by this program; remove it and log in again") from exc
    if os.name == "posix" and mode & OTHERS:
        raise Usage(f"{path}: other users may read this token: revoke it, remove the file and log in again")
    is_whole = isinstance(found, dict) and found.get("url") == url and isinstance(found.get("token"), str)
    if not is_whole:
        raise Usage(f"{path}: not a login for {url}; remove it and log in again")
    return Login(url, found["token"], str(found.get("endsAt") or ""))


def forget(url: str) -> bool:
    """Whether there was one."""
    path = _path(url)
    is_there = path.exists()
    path.unlink(missing_ok=True)
    return is_there


def every() -> list[str]:
    """The services for which a login is kept."""
    found = []
    for path in sorted(folder().glob("*.json")):
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(about, dict) and path == _path(str(about.get("url") or "")):
            found.append(str(about["url"]))
    return found


def _path(url: str) -> Path:
    return folder() / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
