"""A kernel that confines no charts is told to operators: in the notes of `/readyz`, and by `pratique-manage check`."""

from __future__ import annotations

import sys

import pytest

from approvals import apps
from approvals.health_endpoints import startup_checks
from approvals.project import worker
from provisioner import confinement


def test_S37_a_kernel_that_confines_no_charts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup_checks, "_notes", {})
    worker.tell_weak_confinement()
    assert (startup_checks.all_notes(), apps.check_confinement()) == ({}, [])
    monkeypatch.setattr(confinement, "_has_filters", lambda: False)
    monkeypatch.setattr(confinement, "_landlock_version", lambda: 0)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    worker.tell_weak_confinement()
    (found,) = apps.check_confinement()
    assert "renders charts from files and network" in found.msg
    assert startup_checks.all_notes() == {"charts": {"kernel": found.msg}}
