"""Where tokens are kept, and who may read them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from provisioner.cli.plugin import logins
from provisioner.cli.plugin.logins import Login
from provisioner.cli.usage import Usage

ONE, OTHER = Login("https://a.example", "prq_one", "2026-12-01T00:00:00Z"), Login("https://b.example", "prq_other")


def test_S35_only_its_owner_may_read_a_token(own_folder: Path) -> None:
    path = logins.keep(ONE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(own_folder.stat().st_mode) == 0o700
    path.chmod(0o640)
    with pytest.raises(Usage, match="other users may read this token"):
        logins.kept(ONE.url)


def test_each_service_has_a_token_of_its_own(own_folder: Path) -> None:
    logins.keep(ONE)
    logins.keep(OTHER)
    assert (logins.kept(ONE.url), logins.kept("https://c.example")) == (ONE, None)
    assert logins.every() == sorted(logins.every(), key=lambda url: logins._path(url).name)
    assert {*logins.every()} == {ONE.url, OTHER.url}
    assert (logins.forget(ONE.url), logins.forget(ONE.url)) == (True, False)
    assert logins.every() == [OTHER.url]
    assert [*own_folder.glob(".*")] == []


def test_a_file_that_was_put_there_for_another_service_is_refused(own_folder: Path) -> None:
    logins.keep(OTHER).replace(logins._path(ONE.url))
    with pytest.raises(Usage, match="not a login for https://a.example"):
        logins.kept(ONE.url)
    logins._path(ONE.url).write_text("nonsense")
    with pytest.raises(Usage, match="remove it and log in again"):
        logins.kept(ONE.url)


def test_a_token_is_not_shown_by_accident() -> None:
    assert "prq_one" not in repr(ONE)
