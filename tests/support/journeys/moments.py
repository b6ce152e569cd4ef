"""Moments of an apply at which a journey does something, or waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from approvals.models import BundleDeployment
from approvals.steps.records.notes import Notes
from provisioner.cluster.apply.object_writer import Job, ObjectWriter
from provisioner.cluster.apply.waits import Patience
from provisioner.values import ObjectOutcome
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import PATIENCE_SECONDS, wait_until
from tests.support.patience import scaled


def after_the_first(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """`happens` once, after the first object was written and before the next phase."""
    take = Notes.take
    seen: list[ObjectOutcome] = []

    def taken(notes: Notes, outcome: ObjectOutcome) -> None:
        take(notes, outcome)
        seen.append(outcome)
        if len(seen) == 1:
            happens()

    monkeypatch.setattr(Notes, "take", taken)


def in_the_first_write(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """`happens` once, while the first write is under way: it is stored, and its answer is not heard yet.

    Of `bundles.app` that is also the last moment of the first phase, which has one object.
    """
    write, results = ObjectWriter.write, Patience.results
    has_happened = threading.Event()

    def held_back(writer: ObjectWriter, job: Job) -> ObjectOutcome:
        outcome = write(writer, job)
        assert has_happened.wait(scaled(PATIENCE_SECONDS))
        return outcome

    def heard(patience: Patience, futures: Sequence[Future[Any]]) -> list[Any]:
        if not has_happened.is_set():
            happens()
            has_happened.set()
        return results(patience, futures)

    monkeypatch.setattr(ObjectWriter, "write", held_back)
    monkeypatch.setattr(Patience, "results", heard)


def look_until(site: DeployedSite, deployment: BundleDeployment, words: str) -> str:
    wait_until(lambda: words in site.look_after(deployment).health_message, words)
    return deployment.health_message
