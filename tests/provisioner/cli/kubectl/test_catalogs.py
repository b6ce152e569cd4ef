"""`catalog list`, `show` and `diff`: from the cluster alone, and with what the service says of packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provisioner.cli.kubectl import login
from provisioner.cluster.client.api import ClusterClient
from tests.provisioner.cli.kubectl.conftest import Run
from tests.provisioner.cli.kubectl.scene import GROUP, TOKEN, Recorder
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig
from tests.support.kubernetes.live import until_served
from tests.support.servers.process import free_port


def bundle(version: str, *apis: str, **more: Any) -> dict[str, Any]:
    return {
        "name": f"harbour.v{version}",
        "version": version,
        "release": "",
        "image": f"example.com/harbour:{version}",
        "url": "",
        "checksum": "",
        "kubernetes": ">=1.30.0" if version == "1.1.0" else "",
        "apis": list(apis),
        "needs": [],
        "deprecation": None,
        "changed_content": None,
        **more,
    }


ENTRIES = [
    {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0", "skips": [], "skip_range": ">=0.1.0 <1.1.0"},
    {"name": "harbour.v1.0.0", "replaces": "", "skips": [], "skip_range": ""},
]
PACKAGE: dict[str, Any] = {
    "name": "harbour",
    "display_name": "Harbour \u202eOperator",
    "provider": "Port",
    "summary": "Keeps ships",
    "deprecation": None,
    "default_channel": "stable",
    "facts": {
        "kubernetes": ">=1.30.0",
        "install_modes": ["AllNamespaces", "OwnNamespace"],
        "capability": "Deep Insights",
        "maturity": "",
        "app_version": "",
        "keywords": ["ships", "har\u202ebour"],
        "links": [{"name": "Manual", "url": "https://example.com/manual"}],
        "maintainers": [{"name": "Ada", "email": "ada@example.com"}, {"name": "Bert", "email": ""}],
    },
    "channels": [{"name": "stable", "heads": ["harbour.v1.1.0"], "deprecation": "take fast", "entries": ENTRIES}],
    "bundles": [
        bundle("1.1.0", "Berth.example.com/v1"),
        bundle("1.0.0", deprecation="too old", changed_content={"before": "example.com/harbour:other"}),
    ],
}
SUMMARY = {
    "name": "harbour",
    "default_channel": "stable",
    "head_version": "1.1.0",
    "bundle_count": 2,
    "is_deprecated": False,
    "summary": "Keeps ships",
}


@pytest.fixture
def port(own_sandbox: Endpoint, tmp_path: Path, run: Run, service: Recorder) -> str:
    """A catalog as the cluster shows it, and what the service says of it."""
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    until_served(api, "core.rukpak.io", "v1alpha2", "Catalog")
    about = {"apiVersion": GROUP, "kind": "Catalog", "metadata": {"name": "port"}}
    source = {"kind": "image", "image": {"ref": "example.com/catalog:latest"}}
    api.apply({**about, "spec": {"source": source}}, field_manager="test", force=True)
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Read",
        "message": "1 package",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    }
    status = {"packages": 1, "bundles": 2, "problems": 0, "readAt": "2026-11-01T00:00:00Z", "conditions": [ready]}
    api.apply({**about, "status": status}, field_manager="test", subresource="status", force=True)
    address = "/api/v1/catalogs/prod/port"
    problem = {"where": "package quay", "message": "no olm.package describes it, so it is left out"}
    service.answers |= {
        "/api/v1/catalogs": (200, {"results": [{"cluster": "prod", "name": "port"}], "next": None}),
        address: (200, {"problems": [problem]}),
        f"{address}/packages": (200, {"results": [SUMMARY], "next": None}),
        f"{address}/packages/harbour": (200, PACKAGE),
    }
    return service.url


@pytest.fixture
def logged_in(service: Recorder) -> None:
    login.keep_login(login.Login(service.url, TOKEN))


def test_catalogs_are_listed_from_the_cluster_alone(port: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("catalog", "list") == 0
    heads, row = capsys.readouterr().out.splitlines()
    assert heads.split() == ["NAME", "PRIORITY", "PACKAGES", "BUNDLES", "READY", "PROBLEMS", "READ", "SOURCE"]
    assert row.split()[:5] == ["port", "0", "1", "2", "True"]
    assert row.endswith("example.com/catalog:latest")
    assert run("catalog", "list", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["kind"] == "Catalog"


def test_without_a_login_a_catalog_says_how_it_stands(port: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("catalog", "show", "port") == 0
    text = capsys.readouterr().out
    assert "Ready: True (Read)" in text
    assert "Log in to see its packages" in text
    assert run("catalog", "show", "port", "harbour") == 2
    assert "log in there with" in capsys.readouterr().err


def test_with_a_login_packages_are_listed_and_shown(
    port: str, run: Run, logged_in: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("catalog", "show", "port", "--service", port) == 0
    text = capsys.readouterr().out
    assert "package quay: no olm.package describes it" in text
    assert text.splitlines()[-1].split()[:4] == ["harbour", "stable", "1.1.0", "2"]
    assert run("catalog", "show", "port", "harbour", "--service", port) == 0
    text = capsys.readouterr().out
    assert "Harbour \\u202eOperator" in text
    assert "harbour.v1.1.0; replaces harbour.v1.0.0; follows every version in >=0.1.0 <1.1.0" in text
    assert "; for Kubernetes >=1.30.0\n" in text
    assert "  Kubernetes: >=1.30.0\n  install modes: AllNamespaces, OwnNamespace\n  capability: Deep Insights\n" in text
    assert "  keywords: ships, har\\u202ebour\n" in text
    assert "  maintainers: Ada <ada@example.com>, Bert\n  link: Manual https://example.com/manual\n" in text
    assert "channel stable (default), head harbour.v1.1.0\n  deprecated: take fast\n" in text
    assert "harbour.v1.0.0; deprecated: too old; changed its content, before example.com/harbour:other" in text


def test_a_service_of_the_version_before_says_no_facts(
    port: str, run: Run, logged_in: None, service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    bundles = [{key: one[key] for key in one if key != "kubernetes"} for one in PACKAGE["bundles"]]
    before = {key: PACKAGE[key] for key in PACKAGE if key != "facts"}
    service.answers["/api/v1/catalogs/prod/port/packages/harbour"] = (200, {**before, "bundles": bundles})
    assert run("catalog", "show", "port", "harbour", "--service", port) == 0
    assert "Kubernetes" not in capsys.readouterr().out


def forged(value: Any) -> Any:
    """Every word of a publisher with a line of its own at its end."""
    if isinstance(value, dict):
        return {key: forged(one) for key, one in value.items()}
    if isinstance(value, list):
        return [forged(one) for one in value]
    return f"{value}\nFORGED" if isinstance(value, str) else value


def test_S24_no_word_of_a_publisher_makes_a_line_of_its_own(
    port: str, run: Run, logged_in: None, service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "/api/v1/catalogs/prod/port"
    service.answers[address] = (200, forged({"problems": [{"where": "package quay", "message": "has no head"}]}))
    service.answers[f"{address}/packages"] = (200, {"results": [forged(SUMMARY)], "next": None})
    bundles = [{**bundle("1.0.0", "Berth.example.com/v1"), "deprecation": "too old\nFORGED"}, bundle("1.1.0")]
    bundles = [{**one, "image": f"{one['image']}\nFORGED", "needs": ["quay\nFORGED"]} for one in bundles]
    names = {"name": "harbour", "default_channel": "stable"}
    channels = [{**PACKAGE["channels"][0], "entries": forged(ENTRIES), "deprecation": "take fast\nFORGED"}]
    shown = {**PACKAGE, **forged(PACKAGE), **names, "bundles": bundles, "channels": channels}
    service.answers[f"{address}/packages/harbour"] = (200, shown)
    for words in (("show", "port"), ("show", "port", "harbour"), ("diff", "port", "harbour", "1.0.0", "1.1.0")):
        run("catalog", *words, *(("--catalog-only",) if words[0] == "diff" else ()), "--service", port)
        text = capsys.readouterr().out
        assert "FORGED" in text, words
        assert [line for line in text.splitlines() if line.strip().startswith("FORGED")] == [], text


def test_a_package_whose_name_holds_a_slash_is_asked_for_by_its_address(
    port: str, run: Run, logged_in: None, service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    service.answers["/api/v1/catalogs/prod/port/packages/port~1harbour"] = (200, {**PACKAGE, "name": "port/harbour"})
    assert run("catalog", "show", "port", "port/harbour", "--service", port) == 0
    assert capsys.readouterr().out.startswith("port/harbour")


def test_a_registry_that_does_not_answer_is_not_taken_for_the_cluster(
    port: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("rbac", f"oci://127.0.0.1:{free_port()}/shop:1.0.0") != 0
    said = capsys.readouterr().err
    assert "the bundle comes from there" in said
    assert "kubectl version" not in said


def test_two_versions_are_compared_in_the_catalog_alone(
    port: str, run: Run, logged_in: None, service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("catalog", "diff", "port", "harbour", "1.0.0")
    assert run(*words, "harbour.v1.1.0", "--service", port, "--catalog-only") == 1
    assert capsys.readouterr().out.splitlines() == [
        "version: 1.0.0 → 1.1.0",
        "image: example.com/harbour:1.0.0 → example.com/harbour:1.1.0",
        "kubernetes: none → >=1.30.0",
        "deprecation: too old → none",
        "+ API Berth.example.com/v1",
        "may follow directly in stable",
    ]
    assert run("catalog", "diff", "port", "harbour", "nothing", "1.1.0", "--service", port, "--catalog-only") == 1
    assert capsys.readouterr().out.splitlines() == [
        "version: 1.1.0",
        "image: example.com/harbour:1.1.0",
        "kubernetes: >=1.30.0",
        "+ API Berth.example.com/v1",
    ]
    assert run(*words, "1.0.0", "--service", port) == 0
    assert run(*words, "9.9.9", "--service", port) == 2
    assert "0 bundles of harbour of this name or version; it has 1.1.0, 1.0.0" in capsys.readouterr().err
    assert not [one for one in service.paths if one.startswith("POST")]


CHANGES = "/api/v1/catalogs/prod/port/packages/harbour/changes"
REF = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "harbour", "name": "harbour"}
FINDING = {"severity": "dangerous", "rule": "IMG-01", "message": "the image \u202echanges"}
RESULT: dict[str, Any] = {
    "install_namespace": "harbour",
    "service_account": "harbour-installer",
    "hidden": [],
    "report": {
        "headline": ["1 object to update."],
        "findings": [FINDING, {"severity": "safe", "rule": "OBJ-01", "message": "nothing"}],
        "plan": {"digest": "sha256:p", "actions": [{"ref": REF, "action": "update"}]},
        "is_whole": True,
        "parts": {"findings": {"next": None}, "actions": {"next": None}},
    },
    "permissions": {
        "accounts": [
            {
                "account": "ServiceAccount harbour/harbour",
                "sentence": "`harbour/harbour` can now read Secrets",
                "gained": ["get secrets"],
                "gained_count": 3,
                "lost": [],
                "lost_count": 0,
                "risks": [{"severity": "critical", "sentence": "can read every Secret"}],
            }
        ],
        "everybody": [],
        "problems": [],
    },
    "images": [{"ref": REF, "container": "main", "before": "example.com/a:1", "after": "example.com/a:2"}],
    "installer": None,
}


def comparison(state: str, **more: Any) -> dict[str, Any]:
    return {"state": state, "progress": "", "problem": "", "problem_code": "", "result": None, **more}


def test_what_would_change_is_asked_of_the_service_and_told(
    port: str, run: Run, logged_in: None, service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    service.answers[CHANGES] = (200, comparison("done", result=RESULT))
    words = ("catalog", "diff", "port", "harbour", "1.0.0", "1.1.0", "--service", port)
    assert run(*words) == 1
    text = capsys.readouterr().out
    for line in (
        "version: 1.0.0 → 1.1.0",
        "In namespace harbour, without the live objects of the cluster:",
        "  ~ Deployment.apps harbour/harbour",
        "  `harbour/harbour` can now read Secrets",
        "    ◆ can read every Secret",
        "    + and 2 more rights",
        "  ~ Deployment.apps harbour/harbour main: example.com/a: 1 → 2",
        "  ▲ dangerous IMG-01 the image \\u202echanges",
        "  and 1 safe finding",
    ):
        assert line in text.splitlines(), text
    (sent,) = [json.loads(body) for method, path, _, body in service.came if method == "POST" and path == CHANGES]
    assert sent == {"from": "harbour.v1.0.0", "to": "harbour.v1.1.0", "deployment": ""}
    assert run(*words, "-o", "json") == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["from"], record["changes"]["state"]) == ("harbour.v1.0.0", "done")
    assert "parts" not in record["changes"]["result"]["report"]


def lines_answer(texts: list[tuple[str, str]], *, next_part: int | None = None, **more: Any) -> dict[str, Any]:
    lines = [{"kind": kind, "text": text, "old": 0, "new": 0} for kind, text in texts]
    hunks = [{"place": "spec", "lines": lines}] if lines else []
    parts = {"lines": {"total": 3, "from": 0, "count": len(lines), "next": next_part}}
    return {"ref": REF, "is_hidden": False, "hunks": hunks, "parts": parts, "left_out": 0, **more}


def test_the_lines_of_each_object_are_read_in_all_their_parts(
    port: str, run: Run, logged_in: None, service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    service.answers |= {
        CHANGES: (200, comparison("done", result={**RESULT, "changed": {"0": [1, 1], "2": [3, 0]}})),
        f"{CHANGES}/objects/0": (200, lines_answer([("-", "  replicas: 1")], next_part=2, left_out=7)),
        f"{CHANGES}/objects/0?from=harbour.v1.0.0&to=harbour.v1.1.0&lines_from=2": (
            200,
            lines_answer([("+", "  replicas: 2 \u202e")], left_out=7),
        ),
        f"{CHANGES}/objects/2": (200, lines_answer([], is_hidden=True)),
    }
    words = ("catalog", "diff", "port", "harbour", "1.0.0", "1.1.0", "--lines", "--service", port)
    assert run(*words) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("Deployment.apps harbour/harbour:")
    assert lines[at:] == [
        "Deployment.apps harbour/harbour:",
        "  @ spec",
        "  -   replicas: 1",
        "  @ spec",
        "  +   replicas: 2 \\u202e",
        "  and 7 more lines; the report of a request shows them",
        "",
        "Deployment.apps harbour/harbour:",
        "  you may not get it",
    ]


def test_nothing_and_what_a_deployment_runs_can_be_compared_with(
    port: str, run: Run, logged_in: None, service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    installer = {"summary": "3 rules in the whole cluster", "obstacles": [], "yaml": "kind: ServiceAccount"}
    service.answers[CHANGES] = (202, comparison("done", result={**RESULT, "installer": installer}))
    assert run("catalog", "diff", "port", "harbour", "nothing", "1.1.0", "--service", port) == 1
    assert "  harbour/harbour-installer needs 3 rules in the whole cluster; -o yaml has them" in capsys.readouterr().out
    assert run("catalog", "diff", "port", "harbour", "1.1.0", "--deployment", "web", "--service", port) == 1
    sent = [json.loads(body) for method, path, _, body in service.came if method == "POST" and path == CHANGES]
    assert [(one["from"], one["deployment"]) for one in sent] == [("", ""), ("", "web")]
    assert run("catalog", "diff", "port", "harbour", "1.0.0", "1.1.0", "--deployment", "web", "--service", port) == 2
    assert "name only TO" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (403, {"detail": "Kubernetes does not allow ada to create bundledeployments"}, "does not allow ada to create"),
        (429, {"detail": "2 comparisons that you asked for are still being prepared"}, "still being prepared"),
        (200, comparison("failed", problem="no YAML", problem_code="invalid-manifest"), "no YAML [invalid-manifest]"),
        (202, comparison("waiting", progress="fetching it"), "not ready after 0 s"),
    ],
    ids=["right", "quota", "failed", "too slow"],
)
def test_why_nothing_is_told_is_said(
    port: str,
    run: Run,
    logged_in: None,
    service: Recorder,
    status: int,
    answer: dict[str, Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    service.answers[CHANGES] = (status, answer)
    words = ("catalog", "diff", "port", "harbour", "1.0.0", "1.1.0", "--service", port, "--timeout", "0")
    assert run(*words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("show",), "needs the NAME of a catalog", id="no name"),
        pytest.param(("show", "nothing"), "there is no catalog nothing", id="no such catalog"),
        pytest.param(("diff", "port"), "which PACKAGE?", id="no package"),
    ],
)
def test_what_is_missing_is_named(
    port: str, run: Run, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("catalog", *words) == 2
    assert said in capsys.readouterr().err
