"""What was installed from the wheel or the sdist does its work where no checkout is."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from provisioner.review.rules import rule_ids
from tests.packaging.building import SECONDS
from tests.packaging.installing import Installed
from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.process import Server, answers_on, free_port, wait_until

pytestmark = pytest.mark.thorough
WHERE = "import approvals, provisioner; print(approvals.__file__, provisioner.__file__)"
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
# What an sdist gives is the same wheel; so what has nothing to do with files is looked at once.
once = pytest.mark.parametrize("installed", ["wheel"], indirect=True)
STYLES = re.findall(r"static '(css/\w+)\.css'", (ROOT / "templates/base.html").read_text())


def test_nothing_of_the_checkout_is_imported(installed: Installed) -> None:
    for file in installed.run("python", "-c", WHERE).split():
        assert Path(file).is_relative_to(installed.bin.parent)
    assert str(ROOT) not in installed.run("python", "-c", "import sys; print(sys.path)")


@once
def test_both_programs_say_their_version(installed: Installed) -> None:
    assert installed.run("pratique", "--version") == "pratique 0.1.0\n"
    assert installed.run("pratique-manage", "version").startswith("pratique 0.1.0 (Django 5.2.")


@once
def test_the_rules_are_explained_from_the_files_of_the_wheel(installed: Installed) -> None:
    explained = json.loads(installed.run("pratique", "explain", "-o", "json"))
    assert tuple(explained) == rule_ids()


@once
def test_a_setting_that_is_missing_is_named_in_one_sentence(installed: Installed) -> None:
    done = _attempt(_without(installed, "PRATIQUE_SECRET_KEY"), "pratique-manage", "migrate")
    words = "pratique-manage: PRATIQUE_SECRET_KEY is empty: give it at least 50 random characters\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", words)


def test_the_first_page_has_its_style_where_no_files_were_collected(installed: Installed) -> None:
    assert _styles_of_first_page(installed) == [f"/static/{style}.css" for style in STYLES]


@once
def test_the_first_page_has_its_style_where_files_were_collected(installed: Installed, tmp_path: Path) -> None:
    """As the image does it: without a secret, to a folder of its own, under names that change with the content."""
    image = replace(installed, environment={**installed.environment, "PRATIQUE_STATIC_DIR": str(tmp_path / "static")})
    assert "pratique-manage collectstatic --noinput" in DOCKERFILE
    # What other packages bring takes nearly all of the time.
    others = ("--ignore=admin", "--ignore=rest_framework", "--ignore=drf_spectacular_sidecar")
    _without(image, "PRATIQUE_SECRET_KEY").run("pratique-manage", "collectstatic", "--noinput", *others)
    found = _styles_of_first_page(image)
    assert [re.sub(r"\.[0-9a-f]{12}\.css$", "", style) for style in found] == [f"/static/{style}" for style in STYLES]


def _styles_of_first_page(service: Installed) -> list[str]:
    """The addresses of the page's stylesheets, each of which was fetched."""
    with _served(service) as url:
        page = _get(f"{url}/", "text/html")
        assert "Sign in" in page
        styles = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page)
        for style in styles:
            assert "{" in _get(f"{url}{style}", "text/css")
    return styles


@contextmanager
def _served(service: Installed) -> Iterator[str]:
    """The URL of the web server that the image starts."""
    port = free_port()
    words: list[str] = json.loads(DOCKERFILE.partition("\nCMD ")[2])
    words[words.index("--bind") + 1] = f"127.0.0.1:{port}"
    with _running(service, "web", *words) as server:
        server.wait(lambda: answers_on(port), SECONDS)
        yield f"http://127.0.0.1:{port}"


def _get(url: str, kind: str) -> str:
    """The text of a page of that content type; other answers than 200 are errors."""
    with urllib.request.urlopen(url, timeout=scaled(SECONDS)) as answer:
        assert (answer.status, answer.headers.get_content_type()) == (200, kind)
        return str(answer.read().decode())


@contextmanager
def _running(service: Installed, name: str, *words: str) -> Iterator[Server]:
    server = Server(name, service.command(*words), service.folder / f"{name}.log")
    try:
        yield server
    finally:
        server.stop()


def _without(service: Installed, name: str) -> Installed:
    return replace(service, environment={key: value for key, value in service.environment.items() if key != name})


def _attempt(service: Installed, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        service.command(*words),
        cwd=service.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=scaled(SECONDS),
    )


def test_worker_beat_and_watch_run(installed: Installed, redis: str) -> None:
    """Each as deploy/compose.yaml starts it; the worker does what beat sends."""
    service = replace(installed, environment={**installed.environment, "PRATIQUE_REDIS_URL": redis})
    programs = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    with (
        _running(service, "worker", *programs["worker"]["command"]) as worker,
        _running(service, "watch", *programs["watch"]["command"]) as watch,
        _running(service, "beat", *programs["beat"]["command"][:-1], str(service.folder / "beat")) as beat,
    ):
        done = '"event": "task done", "task'

        def has_swept() -> bool:
            return any(done in line and "approvals.sweep" in line for line in worker.log.read_text().splitlines())

        worker.wait(has_swept, SECONDS)
        assert watch.is_running()
        assert beat.is_running()


def test_a_bundle_is_reviewed(installed: Installed) -> None:
    done = _attempt(installed, "pratique", "review", str(ROOT / "deploy/demo/bundles/tugboat/2.0.0"), "-o", "json")
    assert done.stderr == ""
    assert "RB-11" in {finding["rule"] for finding in json.loads(done.stdout)["findings"]}


def test_the_manifests_for_a_cluster_are_printed(installed: Installed) -> None:
    printed = [*yaml.safe_load_all(installed.run("pratique-manage", "cluster_manifests"))]
    files = [*sorted((ROOT / "deploy/crds").glob("*.yaml")), ROOT / "deploy/rbac.yaml"]
    admission = ("mirrors.yaml", "reviews.yaml", "deputies.yaml", "authors.yaml", "author-stamp.yaml", "finalizer.yaml")
    files += [ROOT / "deploy/admission" / name for name in admission]
    assert printed == [one for file in files for one in yaml.safe_load_all(file.read_text())]
    older = [*yaml.safe_load_all(installed.run("pratique-manage", "cluster_manifests", "--without-author-stamp"))]
    assert older == [one for one in printed if not one["kind"].startswith("Mutating")]


@once
def test_the_demo_without_its_extra_says_what_to_install(installed: Installed) -> None:
    done = _attempt(installed, "pratique-manage", "demo")
    assert done.returncode == 1
    assert "pip install 'pratique[demo]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_runs_with_its_extra_and_no_checkout(installed_with_demo: Installed) -> None:
    port = free_port()
    service = replace(installed_with_demo, environment={**installed_with_demo.environment, "PORT": str(port)})
    with _running(service, "demo", "pratique-manage", "demo") as demo:
        demo.wait(lambda: "Ready: http" in demo.log_tail(), SECONDS)
        assert "Sign in" in _get(f"http://127.0.0.1:{port}/", "text/html")
        os.kill(demo.pid, signal.SIGINT)
        wait_until(lambda: not demo.is_running(), "the end of the demo", SECONDS)
    assert (service.folder / ".demo" / "pratique.sqlite3").exists()


def test_only_a_checkout_has_a_real_kubernetes_for_the_demo(installed_with_demo: Installed) -> None:
    settings = {**installed_with_demo.environment, "PORT": str(free_port()), "CLUSTER": "real"}
    done = _attempt(replace(installed_with_demo, environment=settings), "pratique-manage", "demo")
    assert (done.returncode, "CLUSTER=real needs a source checkout of Pratique" in done.stderr) == (1, True)
