"""A bucket of a real S3 server as the content store, and something between that goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from approvals.buckets.location import Location
from tests.support.servers.s3 import S3Server, Wire
from tests.support.servers.s3_faults import Fault, between
from tests.support.stores import use_bucket


@pytest.fixture
def location(s3: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Location:
    return use_bucket(settings, monkeypatch, s3.bucket())


@pytest.fixture
def wire(s3: S3Server) -> Iterator[Wire]:
    made = Wire(s3.url)
    yield made
    made.close()


@pytest.fixture
def behind(location: Location, settings: Any, monkeypatch: pytest.MonkeyPatch, request: Any) -> Callable[[Fault], Any]:
    """Have the store be met through something that answers with this fault."""

    def meet(fault: Fault) -> Any:
        made = between(location.endpoint, fault)
        proxy = made.__enter__()
        request.addfinalizer(lambda: made.__exit__(None, None, None))
        use_bucket(settings, monkeypatch, replace(location, endpoint=proxy.url))
        return proxy

    return meet
