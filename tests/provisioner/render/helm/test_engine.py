"""One process renders several charts: each as a new process would, whatever the one before it tried."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provisioner.chart_engine.frames import packed_frame
from provisioner.chart_engine.limits import MAX_KEPT_CHARTS
from provisioner.errors import BadBundle, BundleTooLarge, TryLater
from provisioner.render.helm import engine, values
from provisioner.render.helm.engine import ChartJob, Output, keep_engine, render
from tests.support.folders import CORPUS
from tests.support.patience import scaled
from tests.support.provisioner.charts import SERVED, chart

# What a chart can see of where it is rendered, and of what others call by the same names.
LOOKING = (
    '{{ define "shop.fullname" }}own{{ end }}{{ include "shop.fullname" . }} {{ .Values | toJson }} {{ .Chart | toJson }}'
    ' {{ .Release | toJson }} {{ .Capabilities.APIVersions | toJson }} {{ .Capabilities.KubeVersion.Version }} {{ .Files.Get "a.txt" }} {{ .Template | toJson }}'
    ' {{ lookup "v1" "Secret" "" "" | toJson }} {{ tpl "{{ 1 }}" . }}'
)
HOSTILE = {
    "fails": "{{ fail .Values.text }}",
    "does not parse": "{{",
    "grows": '{{ $_ := set . "s" "x" }}{{ range until 40 }}{{ $_ := set $ "s" (printf "%s%s" $.s $.s) }}{{ end }}',
    "ends by itself": '{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}',
    "prints much": '{{ range until 2000 }}{{ repeat 20000 "x" }}{{ end }}',
    "takes the names of others": (
        '{{ define "shop.fullname" }}evil{{ end }}{{ define "canary" }}evil{{ end }}{{ define "shop.labels" }}{{ end }}'
    ),
    "writes into what it is given": (
        '{{ $_ := set .Values "text" "evil" }}{{ $_ := set .Values "global" (dict "a" 1) }}{{ $_ := set . "Values" 1 }}'
        '{{ $_ := set .Release "Name" "evil" }}{{ $_ := set . "Capabilities" (dict) }}{{ $_ := unset . "Files" }}'
        '{{ $_ := set .Template "Name" "evil" }}'
    ),
    "sorts and grows what all are given": (
        '{{ $a := .Capabilities.APIVersions }}{{ $_ := sortAlpha $a }}{{ $b := append $a "evil/v1" }}'
        '{{ $c := prepend $b "evil/v2" }}{{ $d := mustAppend $a "evil/v3" }}{{ $e := reverse $a }}{{ $f := uniq $a }}'
    ),
    "has a schema that reads": "{{ 1 }}",
}


def job(files: dict[str, bytes] | None = None, **changes: Any) -> ChartJob:
    version = values.DEFAULT_HELM_VERSION
    given = ChartJob(
        files or seeing("own"), {}, "shop", "home", "v1.36.3", SERVED, is_upgrade=False, helm_version=version
    )
    return replace(given, **changes)


def seeing(text: str) -> dict[str, bytes]:
    """A chart that prints all that it sees, `text` among it."""
    return chart(values=f"text: {text}\n", templates__one=LOOKING) | {"a.txt": text.encode()}


def hostile(name: str) -> ChartJob:
    files = chart(templates__one=HOSTILE[name])
    if "schema" in name:
        files["values.schema.json"] = b'{"$id": "https://json-schema.org/x", "$ref": "https://json-schema.org/y"}'
    return job(files)


def pid() -> int:
    """The process that is kept here, which has rendered a chart."""
    kept = engine._kept.get()
    assert kept is not None
    assert kept._engine is not None
    return kept._engine._process.pid


@pytest.fixture
def cold(each_helm: int) -> Output:
    return render(job())


@pytest.fixture
def kept() -> Iterator[None]:
    with keep_engine():
        yield


def test_one_process_renders_a_number_of_charts_each_as_a_new_one_does(cold: Output, kept: None) -> None:
    pids = []
    for number in range(MAX_KEPT_CHARTS + 2):
        found = render(job(seeing(f"text{number}")))
        pids.append(pid())
        (was,), (now,) = cold.templates.values(), found.templates.values()
        assert now == was.replace('"text":"own"', f'"text":"text{number}"').replace(" own {", f" text{number} {{")
        assert (found.again, found.crds) == ({}, {})
    assert len(set(pids[:MAX_KEPT_CHARTS])) == len(set(pids[MAX_KEPT_CHARTS:])) == 1
    assert len(set(pids)) == 2


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.thorough if name == "grows" else ()) for name in HOSTILE]
)
def test_a_hostile_chart_changes_nothing_for_the_next(name: str, cold: Output, kept: None) -> None:
    render(job())
    before = pid()
    try:
        render(hostile(name))
        is_refused = False
    except BadBundle:
        is_refused = True
    assert render(job()) == cold
    assert (pid() != before) == is_refused, "after a refusal there is a new one"


def test_what_a_used_process_says_against_a_chart_does_not_count(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    render(job())
    before = pid()
    monkeypatch.setattr(engine, "MAX_OUTPUT_BYTES", 10)  # of the one that was used
    monkeypatch.setattr(engine, "_started", _restoring(monkeypatch, engine._started))
    render(job())
    assert pid() != before


def _restoring(monkeypatch: pytest.MonkeyPatch, started: Any) -> Any:
    def begin(module: str) -> Any:
        monkeypatch.undo()
        return started(module)

    return begin


@pytest.mark.parametrize(
    "changes",
    [{"namespace": "away"}, {"kube_version": "v1.35.0"}, {"api_versions": ("v1",)}, {"kube_version": ""}],
    ids=str,
)
def test_no_namespace_and_no_cluster_shares_the_process_of_another(changes: dict[str, Any], kept: None) -> None:
    render(job())
    before = pid()
    other = job(**changes)
    render(other)
    assert pid() != before


@pytest.mark.parametrize("changes", [{"lookups": ()}, {"is_alone": True}], ids=str)
def test_a_chart_that_is_told_of_the_cluster_has_a_process_that_renders_no_other(
    changes: dict[str, Any], kept: None
) -> None:
    render(job())
    before = pid()
    render(job(chart(), **changes))
    render(job())
    assert pid() == before


def test_a_process_that_is_not_what_it_was_renders_no_other(kept: None) -> None:
    render(job())
    before = pid()
    kept_now = engine._kept.get()
    assert kept_now is not None
    assert kept_now._engine is not None
    kept_now._engine._state = ["another canary", 0, [0, 1, 2]]
    render(job())
    assert pid() != before


def test_one_that_died_meanwhile_is_replaced(cold: Output, kept: None) -> None:
    render(job())
    before = pid()
    os.kill(before, signal.SIGKILL)
    assert render(job()) == cold
    assert pid() != before


@pytest.mark.parametrize("is_before", [True, False], ids=["in place of its state", "after its state"])
@pytest.mark.parametrize(
    "said", [bytes(16), packed_frame({"templates": {}, "again": {}, "crds": {}})], ids=["garbage", "answer"]
)
def test_one_that_says_what_it_was_not_asked_is_replaced(
    said: bytes, is_before: bool, cold: Output, kept: None
) -> None:
    render(job())
    before, kept_now = pid(), engine._kept.get()
    assert kept_now is not None
    assert kept_now._engine is not None
    its = kept_now._engine
    its._unread[:] = said if is_before else packed_frame({"state": its._state}) + said
    assert render(job()) == cold
    assert pid() != before


def test_a_fork_does_not_use_the_process_of_its_parent(kept: None) -> None:
    render(job())
    kept_now, before = engine._kept.get(), pid()
    assert kept_now is not None
    kept_now.pid += 1
    render(job())
    kept_now.pid -= 1
    assert pid() == before


def test_it_starts_early_inside_another_one_as_well(kept: None) -> None:
    with keep_engine(starts=True):
        started = pid()
        render(job())
    assert pid() == started


def test_nothing_is_left_of_it_after_an_error() -> None:
    descriptors, pids = os.listdir("/proc/self/fd"), []
    for last in (hostile("fails"), job(kube_version=0)):
        with suppress(BadBundle), keep_engine(starts=True), keep_engine():
            render(job())
            pids.append(pid())
            render(last)
    assert len(set(pids)) == 2
    assert os.listdir("/proc/self/fd") == descriptors
    assert not any(Path(f"/proc/{number}").exists() for number in pids)


@pytest.mark.parametrize(
    "when",
    [pytest.param(when, marks=pytest.mark.thorough) for when in ("before a chart", "after a chart")] + ["in a chart"],
)
def test_it_ends_with_its_parent(when: str) -> None:
    code = f"""
import threading, time
from provisioner.render.helm import engine
from tests.provisioner.render.helm.test_engine import job, pid, render
with engine.keep_engine(starts=True):
    print(engine._kept.get()._engine._process.pid, flush=True)
    if {when!r} == "in a chart":
        render(job({{**job().files, "templates/loop.yaml": b"{{{{ range until 99999 }}}}{{{{ range until 9999 }}}}{{{{ end }}}}{{{{ end }}}}"}}))
    if {when!r} == "after a chart":
        render(job())
    print("done", flush=True)
    time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        if when == "in a chart":
            time.sleep(1)
        else:
            parent.stdout.readline()
        parent.kill()
    until = time.monotonic() + scaled(60)
    while Path(f"/proc/{child}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()


def test_where_the_machine_has_no_time_it_is_tried_again(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    render(job())
    os.kill(pid(), signal.SIGSTOP)
    # Less than another one takes to start, where this one had not said yet that it waits.
    monkeypatch.setattr(engine, "WALL_SECONDS", 0.05)
    with pytest.raises(TryLater, match=r"the machine was too busy to render the chart within 0\.05 s"):
        render(job())


@pytest.mark.thorough
def test_a_loop_is_ended_by_its_processor_time_and_so_refused(kept: None) -> None:
    loop = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
    render(job())
    with pytest.raises(BundleTooLarge, match="more than 20 s of processor time"):
        render(job(chart(templates__loop=loop)))


def test_one_that_cannot_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MODULE", "provisioner.no_such_module")
    with pytest.raises(TryLater, match="could not be started"):
        render(job())


@pytest.mark.thorough
@pytest.mark.corpus
def test_200_charts_in_a_row_are_each_as_from_a_new_process() -> None:
    order = random.Random(43)
    jobs = [job(seeing("own")), *(hostile(name) for name in HOSTILE if name != "grows")]
    for folder in sorted((CORPUS / "charts").glob("*/*")):
        files = {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
        if "Chart.template.yaml" in files:
            files["Chart.yaml"] = files.pop("Chart.template.yaml")
        jobs.append(job(files, is_upgrade=order.random() < 0.5))
    expected = [outcome(one) for one in jobs]
    with keep_engine():
        for _ in range(200):
            at = order.randrange(len(jobs))
            assert outcome(jobs[at]) == expected[at]


def outcome(wanted: ChartJob) -> tuple[Any, ...]:
    """What is rendered, or refused; a chart that moves is another one each time."""
    try:
        found = render(wanted)
    except BadBundle as exc:
        return type(exc), exc.in_full
    return (
        {path: text for path, text in found.templates.items() if path not in found.again},
        sorted(found.again),
        found.crds,
    )


def test_one_that_has_grown_renders_no_other(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    render(job())
    before = pid()
    monkeypatch.setattr(engine, "MAX_KEPT_BYTES", 1)
    render(job())
    assert pid() != before


def test_where_the_program_of_helm_3_is_missing_or_another_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        BadBundle, match=r"config\.helmVersion: 3 needs the program pratique-helm3 on the PATH .*/helm3"
    ):
        render(job(helm_version=3))
    program = tmp_path / "pratique-helm3"
    program.write_bytes(b"no program")
    program.chmod(0o755)
    with pytest.raises(BadBundle, match=r"pratique-helm3 could not be run; build it anew from deploy/helm3"):
        render(job(helm_version=3))


def test_a_program_with_another_version_of_helm_3_renders_nothing(helm3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "HELM_3", replace(engine.HELM_3, version="v3.0.0"))
    with pytest.raises(BadBundle, match=r"has Helm 'v3\.22\.0'; expected v3\.0\.0: build it anew from deploy/helm3"):
        render(job(helm_version=3))
