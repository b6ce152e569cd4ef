"""Charts that no check has seen, rendered with one guard of the kernel alone: each has to hold by itself."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from provisioner import child_process
from provisioner.errors import BadBundle
from provisioner.render.helm import engine
from provisioner.render.helm.engine import ChartJob
from tests.provisioner.render.helm import unguarded
from tests.provisioner.render.helm.unguarded import CALLS, CHECKS, FILES, GUARDS, NETWORK
from tests.support.provisioner.charts import SERVED, chart

NUMBER = b'{"type": "number"}'
REFUSED = "the chart: its schema refers to something, which is not in the chart; expected references with #"


def words_about(
    references: list[str], guards: set[str], monkeypatch: pytest.MonkeyPatch, lookups: tuple[()] | None = ()
) -> str:
    """What is said of a chart whose schema has these references, by a child that has these guards alone."""
    monkeypatch.setattr(engine, "MODULE", unguarded.__name__)
    monkeypatch.setattr(engine, "LOOKUP_MODULE", unguarded.__name__)
    answers = "" if lookups is None else "yes"
    without = " ".join(sorted(GUARDS - guards))
    monkeypatch.setattr(engine, "started", partial(child_process.started, WITHOUT=without, ANSWERS=answers))
    names = [f"v{at}" for at in range(len(references))]
    schema = {"properties": {name: {"$ref": one} for name, one in zip(names, references, strict=True)}}
    files = chart() | {"values.schema.json": json.dumps(schema).encode()}
    values = dict.fromkeys(names, "text")
    with pytest.raises(BadBundle) as caught:
        engine.render(ChartJob(files, values, "shop", "home", "v1.36.3", SERVED, is_upgrade=False, lookups=lookups))
    return caught.value.in_full


def is_given(call: str) -> bool:
    """Whether this kernel has this layer for this account."""
    code = f"from provisioner import confinement; print(confinement.{call})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout == "True\n"


@pytest.mark.parametrize("lookups", [(), None], ids=["lookups", "no lookups"])
@pytest.mark.parametrize("guard", [None, FILES, CALLS])
def test_S37_a_schema_that_no_check_saw_reads_neither_files_nor_pipes_of_its_parent(
    guard: str | None, lookups: tuple[()] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if guard == FILES:
        assert is_given("take_files(readable=())"), "this test needs a kernel with Landlock (Linux 5.13 or later)"
    (tmp_path / "secret.json").write_bytes(NUMBER)
    reading, writing = os.pipe()
    os.write(writing, NUMBER)
    os.close(writing)
    pipe = f"/proc/{os.getpid()}/fd/{reading}"
    there, absent = (f"file://{path}" for path in (tmp_path / "secret.json", tmp_path / "absent.json"))
    told = words_about([there, f"file://{pipe}"], {guard or ""}, monkeypatch, lookups)
    left = os.read(reading, 100)
    os.close(reading)
    if guard is None:  # what the attack does where nothing holds
        assert told.count("got string, want number") == 2
        assert not left
        return
    assert (told, left) == (REFUSED, NUMBER)
    assert words_about([absent], {guard}, monkeypatch, lookups) == REFUSED, "nor whether one exists"


class Listener:
    """Something on the loopback of this machine, which counts who comes."""

    def __init__(self) -> None:
        self.visits = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                visitor, _ = self._socket.accept()
            except OSError:
                return
            self.visits += 1
            visitor.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.mark.parametrize("guard", [None, NETWORK, CALLS])
def test_S37_a_schema_that_no_check_saw_reaches_nobody(
    guard: str | None, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    if guard == NETWORK and not is_given("take_network()"):
        pytest.skip("no namespaces for this account here")
    told = words_about([f"http://127.0.0.1:{listener.port}/x"], {guard or ""}, monkeypatch)
    assert (told, listener.visits > 0) == (REFUSED, guard is None)


def test_what_the_kernel_leaves_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert "refers to 'file:///x'" in words_about(["file:///x"], {CHECKS}, monkeypatch)
    (record,) = caplog.records
    assert vars(record)["left"] == ["network", "files"]
