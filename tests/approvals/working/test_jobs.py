"""Every kind of work is found again by its name, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import approvals
from approvals.jobs import JOBS
from approvals.working import Work


def kinds_of(kind: type[Work]) -> Iterator[type[Work]]:
    for one in kind.__subclasses__():
        yield one
        yield from kinds_of(one)


def test_S26_every_kind_of_work_can_be_done_alone() -> None:
    for module in walk_packages(approvals.__path__, "approvals."):
        if ".management." not in module.name and ".migrations." not in module.name:
            import_module(module.name)
    named = {
        one.task: one for one in kinds_of(Work) if one.__module__.startswith("approvals.") and hasattr(one, "task")
    }
    assert {task: JOBS.get(task) for task in named} == named
    assert len(named) > 5
