from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import pytest

import provisioner.review
from provisioner.cli import main
from provisioner.cli.arguments import Usage
from provisioner.cli.inputs import EVERYWHERE, source_of
from provisioner.cli.review import exit_status
from provisioner.pipeline import PrepareOptions, look_offline, prepare
from provisioner.render import BUILT_IN
from provisioner.review.base.facts import ReviewRule
from provisioner.source import GitSource, HttpSource, ImageSource, LocalSource, Source
from provisioner.unpack import UnpackLimits
from provisioner.values import Plan, Report, Section, Severity
from tests.support.patience import scaled
from tests.support.provisioner.cases import FOLDER as CASES
from tests.support.provisioner.charts import packed
from tests.support.provisioner.contents import WEB

SCHEMA = json.loads((Path(provisioner.review.__file__).parent / "report.schema.json").read_text())
COMMIT = "a" * 40
DIGEST = "sha256:" + "b" * 64


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["review", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def case(name: str) -> tuple[str, ...]:
    folder = CASES / name
    old = ("--old", str(folder / "old")) if (folder / "old").is_dir() else ()
    return (str(folder / "new"), *old)


@pytest.mark.parametrize(
    ("name", "more", "status"),
    [
        pytest.param("image-by-tag-only", (), 0, id="notable is below the default"),
        pytest.param("image-by-tag-only", ("--fail-on", "notable"), 1, id="notable where asked for"),
        pytest.param("image-latest", (), 1, id="dangerous"),
        pytest.param("image-latest", ("--fail-on", "breaking"), 0, id="dangerous below breaking"),
        pytest.param("image-latest", ("--fail-on", "never"), 0, id="never"),
        pytest.param("crd-field-removed", (), 1, id="breaking"),
        pytest.param("binding-to-a-role-elsewhere", (), 2, id="unknown"),
        pytest.param("binding-to-a-role-elsewhere", ("--fail-on", "never"), 2, id="unknown is never fine"),
        pytest.param("webhook-cannot-be-called", (), 1, id="unknown and worse"),
        pytest.param("account-knew-every-secret-before", (), 0, id="critical, but as before"),
        pytest.param("roles-split-without-effect", (), 0, id="harmless"),
    ],
)
def test_the_exit_status_says_how_bad_it_is(
    capsys: pytest.CaptureFixture[str], name: str, more: tuple[str, ...], status: int
) -> None:
    assert run(capsys, *case(name), *more)[0] == status


def test_the_format_of_an_archive_is_seen_by_what_lies_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Chart.Name }}-settings'}\n"
    files = {"Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.0.0\n", "templates/settings.yaml": settings}
    for name, data in (("shop.tgz", packed(files)), ("shop", packed(files)), ("bare.tar.gz", packed(files, "."))):
        (tmp_path / name).write_bytes(data)
        assert "shop-settings" in run(capsys, str(tmp_path / name), "--all")[1]
    (tmp_path / "operator.tgz").write_bytes(packed({"metadata/annotations.yaml": b"annotations: {}\n"}, "."))
    assert "ClusterServiceVersions; expected one" in run(capsys, str(tmp_path / "operator.tgz"))[2]
    kustomization = b"resources: [https://example.com/a.yaml]\n"
    (tmp_path / "ours.tgz").write_bytes(packed({"kustomization.yaml": kustomization}, "."))
    assert "kustomization" in run(capsys, str(tmp_path / "ours.tgz"))[2]
    (tmp_path / "broken.tgz").write_bytes(b"\x1f\x8b no archive")
    assert run(capsys, str(tmp_path / "broken.tgz"))[0] == 2


def test_the_format_of_a_folder_is_seen_by_what_lies_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart, operator = tmp_path / "chart", tmp_path / "operator"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Chart.Name }}-settings'}\n"
    (chart / "templates" / "settings.yaml").write_text(settings)
    assert "shop-settings" in run(capsys, str(chart), "--all")[1]
    status, _, told = run(capsys, str(chart), "--format", "plain")
    assert (status, "subfolders are not read" in told, "It was read as" in told) == (2, True, False)
    (operator / "metadata").mkdir(parents=True)
    (operator / "metadata" / "annotations.yaml").write_text("annotations: {}\n")
    assert "ClusterServiceVersions; expected one" in run(capsys, str(operator))[2]
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "kustomization.yml").write_text("resources: [https://example.com/a.yaml]\n")
    assert "kustomization" in run(capsys, str(tmp_path / "ours"))[2]
    for folder in (tmp_path / "packed", tmp_path / "bare"):
        folder.mkdir()
    (tmp_path / "packed" / "a").mkdir()
    (tmp_path / "packed" / "a" / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    assert (
        "It was read as plain; name another format, such as --format helm" in run(capsys, str(tmp_path / "packed"))[2]
    )
    csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: shop.v1.0.0}\n"
    (tmp_path / "bare" / "csv.yaml").write_text(csv)
    assert "add --format registry-v1" in run(capsys, str(tmp_path / "bare"))[2]
    assert "shop.v1.0.0" in run(capsys, str(tmp_path / "bare"), "--format", "plain", "--all")[1]


@contextmanager
def pipe(text: bytes) -> Iterator[str]:
    """The path of a pipe that says `text`, as a shell makes them."""
    reading, writing = os.pipe()
    os.write(writing, text)
    os.close(writing)
    yield f"/dev/fd/{reading}"
    os.close(reading)


def test_two_versions_are_read_by_formats_and_options_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, chart = tmp_path / "plain", tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    plain.mkdir()
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s, namespace: shop}\ndata: {mode: %s}\n"
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (chart / "templates" / "s.yaml").write_text(settings % "'{{ .Values.mode }}'")
    (plain / "s.yaml").write_text(settings % "slow")
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text('{"values": {"mode": "slow"}}')
    new.write_text('{"values": {"mode": "fast"}}')
    for side, more in ((plain, ()), (chart, ("--old-config", str(old)))):
        _, told, _ = run(capsys, str(chart), "--old", str(side), "--config", str(new), *more)
        assert "slow → fast" in told
    same = run(capsys, str(chart), "--old", str(chart), "--config", str(new))[1]
    assert "No object changes" in same
    assert "--old-config goes with --old" in run(capsys, str(chart), "--old-config", str(old))[2]
    with pipe(old.read_bytes()) as first, pipe(new.read_bytes()) as second:
        told = run(capsys, str(chart), "--old", str(chart), "--config", second, "--old-config", first)[1]
    assert "slow → fast" in told
    with pipe(new.read_bytes()) as both:
        assert run(capsys, str(chart), "--old", str(chart), "--config", both)[1] == same


@pytest.mark.parametrize(("side", "named"), [("old", "--old"), ("new", "BUNDLE")])
def test_an_error_says_which_of_two_versions_it_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str, named: str
) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.yaml").write_text("kind: [" if folder == side else json.dumps(WEB))
    status, _, told = run(capsys, str(tmp_path / "new"), "--old", str(tmp_path / "old"))
    assert (status, f"{named} {tmp_path / side}: " in told) == (2, True)


@pytest.mark.parametrize(
    ("severities", "fail_on", "status"),
    [
        ([], "safe", 0),
        (["safe"], "safe", 1),
        (["dangerous", "unknown"], "dangerous", 2),
        (["breaking", "unknown"], "dangerous", 1),
        (["breaking", "unknown"], "critical", 2),
        (["critical", "unknown"], "critical", 1),
        (["unknown"], "unknown", 2),
    ],
)
def test_unknown_gives_2_unless_something_worse_gives_1(severities: list[str], fail_on: str, status: int) -> None:
    findings = tuple(ReviewRule("A-01", Section.OBJECTS, Severity(one)).at(None, "words") for one in severities)
    assert exit_status(Report((), findings, Plan((), "")), fail_on) == status


def test_a_review_says_what_a_comparison_of_the_service_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "web.yaml").write_text(json.dumps(WEB))
    _, out, _ = run(capsys, str(tmp_path), "--install-namespace", "shop", "-o", "json")
    options = PrepareOptions("shop", "installer")
    source = LocalSource(str(tmp_path))
    content = prepare(
        [source],
        options=options,
        egress=EVERYWHERE,
        credentials=None,
        limits=UnpackLimits(),
        is_namespaced=BUILT_IN.get,
    )
    wanted = [(one.rule, one.severity, one.message) for one in look_offline(content, None).findings]
    assert [(one["rule"], one["severity"], one["message"]) for one in json.loads(out)["findings"]] == wanted


def test_json_fits_the_published_schema(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *case("account-reads-every-secret"), "-o", "json")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(out))


def test_the_lines_that_change_hide_credentials_unless_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    variable = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: b}}\ndata: {{password: {value}, m: {value}1}}"
    )
    for folder, value in (("old", "hunter2"), ("new", "hunter3")):
        (tmp_path / folder / "manifests").mkdir(parents=True)
        (tmp_path / folder / "manifests" / "a.yaml").write_text(variable.format(value=value))
    bundles = (str(tmp_path / "new"), "--old", str(tmp_path / "old"))
    _, out, _ = run(capsys, *bundles, "--diff")
    assert ("hunter21" in out, "password: hunter" in out, "hidden values changed" in out) == (True, False, True)
    _, out, _ = run(capsys, *bundles, "--diff", "--show-credentials")
    assert ("password: hunter2" in out, "password: hunter3" in out) == (True, True)
    status, _, err = run(capsys, *bundles, "--show-credentials")
    assert (status, "goes with --diff" in err) == (2, True)


def test_html_is_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *case("account-reads-every-secret"), "-o", "html")
    assert out.startswith("<!doctype html>")
    assert "<script" not in out


def test_text_says_the_worst_new_thing_first(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *case("account-reads-every-secret"))
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    first = " ".join(lines[1:6])
    assert 0 < first.index("bypass the approvals of Pratique") < first.index("read every Secret")
    assert "\x1b" not in out


def test_the_lines_that_change_are_shown_where_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *case("image-latest"), "--diff")
    assert "image: registry.example.com/app" in out


def test_secret_values_are_in_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    for output in ("text", "json", "html"):
        status, out, err = run(capsys, *case("secret-in-the-bundle"), "-o", output, "--diff")
        assert status == 1
        assert "Pl4nted" not in out + err


def test_an_archive_is_a_bundle(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bundle.tar.gz", "w:gz") as archive:
        archive.add(CASES / "image-by-tag-only" / "new", arcname="manifests")
    assert run(capsys, str(tmp_path / "bundle.tar.gz"))[0] == 0


@pytest.mark.parametrize(
    ("bundle", "source"),
    [
        pytest.param(f"oci://example.com/a/b@{DIGEST}", ImageSource(f"example.com/a/b@{DIGEST}"), id="oci"),
        pytest.param("example.com/a/b:1.0", ImageSource("example.com/a/b:1.0"), id="image by tag"),
        pytest.param(f"example.com:5000/a@{DIGEST}", ImageSource(f"example.com:5000/a@{DIGEST}"), id="with port"),
        pytest.param(
            f"git+https://example.com/a.git@{COMMIT}#deploy",
            GitSource("https://example.com/a.git", commit=COMMIT, directory="deploy"),
            id="git commit",
        ),
        pytest.param(
            "git+https://example.com/a.git@main", GitSource("https://example.com/a.git", branch="main"), id="git branch"
        ),
        pytest.param(
            "git+https://example.com/a.git@v1.2.3", GitSource("https://example.com/a.git", tag="v1.2.3"), id="git tag"
        ),
        pytest.param(
            "git+https://example.com/a.git@refs/tags/old",
            GitSource("https://example.com/a.git", tag="old"),
            id="git tag by its whole name",
        ),
        pytest.param(
            f"https://example.com/a.tgz#{DIGEST}", HttpSource("https://example.com/a.tgz", checksum=DIGEST), id="http"
        ),
    ],
)
def test_a_reference_is_understood(bundle: str, source: Source) -> None:
    assert source_of(bundle) == source


def test_what_exists_is_a_file_whatever_its_name_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "example.com").mkdir()
    (tmp_path / "example.com" / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    assert source_of("example.com/a") == LocalSource("example.com/a")


@pytest.mark.parametrize(
    "bundle", ["nowhere", "./nowhere/here", "git+https://example.com/a.git", "git+ssh://x/y@z", ""]
)
def test_what_means_nothing_is_refused_with_what_was_expected(bundle: str) -> None:
    with pytest.raises(Usage, match=r"no such file|expected"):
        source_of(bundle)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(("nowhere",), "no such file or folder", id="no such bundle"),
        pytest.param((".", "--kubeconfig", "nowhere"), "nowhere", id="no such kubeconfig"),
        pytest.param((".", "--service-account", "a"), "--kubeconfig", id="an account without a cluster"),
        pytest.param((".", "--config", "nowhere"), "nowhere", id="no such config"),
        pytest.param((".", "--config", "/dev/zero"), "/dev/zero: more than 2 MiB", id="a config without an end"),
        pytest.param((".", "--config", __file__), "expected JSON", id="a config in another language"),
    ],
)
def test_an_error_is_one_sentence_and_status_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert expected in err
    assert "Traceback" not in err


def test_S24_an_error_cannot_write_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "no\x1b[2Jwhere\u202e")
    assert "\x1b" not in err
    assert "\u202e" not in err


def test_a_bundle_that_is_broken_says_which_file_and_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    status, _, err = run(capsys, str(tmp_path))
    assert status == 2
    assert "bad.yaml" in err


@pytest.mark.parametrize("words", [[], ["nothing"], ["review"], ["review", "a", "b"], ["review", "-o", "pdf", "a"]])
def test_wrong_usage_is_status_2(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "usage: pratique" in capsys.readouterr().err


def test_help_explains_bundles_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["review", "--help"])
    out = capsys.readouterr().out
    assert all(words in out for words in ("oci://", "git+https://", "exit status", "an error, or an unknown finding"))
    assert max(map(len, out.splitlines())) <= 80


def test_the_command_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "provisioner.cli", "review", str(CASES / "image-by-tag-only" / "new")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(120), check=False)
    assert done.returncode == 0
    assert "IMG-01" in done.stdout


def test_a_review_of_files_loads_nothing_that_talks_to_servers_and_still_reaches_all_that_does() -> None:
    code = f"""
import sys
from provisioner.cli import main
main(["review", {str(CASES / "image-by-tag-only" / "new")!r}])
print("loaded:", *sys.modules)
from provisioner.pipeline import deploy, look, preflight
from provisioner.source import SourceClient
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("loaded:")[2].split())
    talking = {"cryptography", "dulwich", "kubernetes", "provisioner.cluster.client", "requests", "urllib3"}
    assert not loaded & talking
    assert "provisioner.review.frame" in loaded


def test_a_command_that_is_none_is_told_all_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reviews"])
    said = capsys.readouterr().err
    for name in ("review", "crd-diff", "rbac", "preflight", "explain", "catalog", "plugins"):
        assert name in said.partition("choose from")[2]
