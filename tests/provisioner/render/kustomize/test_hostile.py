"""Kustomizations that ask for what is not theirs, or for too much, and a program that misbehaves."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from provisioner import own_programs
from provisioner.errors import BadBundle, BundleTooLarge, TryLater
from provisioner.render.kustomize import engine
from tests.provisioner.render.kustomize.kustomizations import SERVICE, built

CANARY = "hunter22hunter22"
SECRET = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{password: {CANARY}}}\n"
ELSEWHERE = "lies elsewhere, and nothing is fetched here"
OUTSIDE = "it reads a file outside of the folder of its kustomization"
PLUGIN = "it names a plug-in or a function"
CHARTS = "no charts are rendered here"
MISSING = "it names what is not in the sources"
CANNOT = "kustomize cannot build it"
A_FUNCTION = "apiVersion: v1\nkind: Run\nmetadata:\n  name: run\n  annotations:\n    config.kubernetes.io/function: |\n      %s\n"


def resources(entry: str) -> dict[str, str]:
    return {"kustomization.yaml": f"resources: ['{entry}']\n"}


def transformer(text: str) -> dict[str, str]:
    return {"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]\n", "a.yaml": SERVICE, "t.yaml": text}


def generated(kind: str, entry: str) -> dict[str, str]:
    return {"kustomization.yaml": f"configMapGenerator: [{{name: a, {kind}: ['{entry}']}}]\n"}


# What each asks for, and what everybody is told.
REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "https": (resources("https://example.com/a.yaml"), f"'https://example.com/a.yaml' {ELSEWHERE}"),
    "a key in the address": (resources(f"https://u:{CANARY}@example.com/a"), ELSEWHERE),
    "github": (resources("github.com/org/repo//deploy?ref=v1"), ELSEWHERE),
    "ssh": (resources("git@github.com:org/repo.git"), ELSEWHERE),
    "a file address": (resources("file:///etc//passwd"), ELSEWHERE),
    "git over http": (resources("git::https://example.com/org/repo"), ELSEWHERE),
    "a component elsewhere": ({"kustomization.yaml": "components: ['ssh://git@example.com/a/b']"}, ELSEWHERE),
    "climbing": (resources("../../../../etc/passwd"), MISSING),
    "absolute": (resources("/etc/passwd"), MISSING),
    "climbing by a generator": (generated("files", "../../etc/passwd"), MISSING),
    "an absolute path in a generator": (generated("envs", "/proc/self/environ"), MISSING),
    "a patch elsewhere": (
        {
            "kustomization.yaml": f"resources: [a.yaml]\npatches: [{{path: 'https://u:{CANARY}@example.com/p'}}]",
            "a.yaml": SERVICE,
        },
        CANNOT,
    ),
    "a file of another kustomization": (
        {"kustomization.yaml": "resources: [b]", "b/kustomization.yaml": "resources: [../a.yaml]", "a.yaml": SERVICE},
        OUTSIDE,
    ),
    "charts": ({"kustomization.yaml": "helmCharts: [{name: a, repo: 'https://example.com'}]"}, f"helmCharts: {CHARTS}"),
    "a chart by a generator": (
        {
            "kustomization.yaml": "generators: [g.yaml]",
            "g.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: a\n",
        },
        CANNOT,
    ),
    "a container": (transformer(A_FUNCTION % "container: {image: example.com/run}"), PLUGIN),
    "a program": (transformer(A_FUNCTION % "exec: {path: ./run.sh}"), PLUGIN),
    "starlark": (transformer(A_FUNCTION % "starlark: {path: run.star}"), PLUGIN),
    "a plug-in": (transformer("apiVersion: example.com/v1\nkind: Plugin\nmetadata: {name: p}\n"), PLUGIN),
    "its own base": (
        {"kustomization.yaml": "resources: [a]", "a/kustomization.yaml": "resources: [..]"},
        "in a circle",
    ),
    "a circle": (
        {"kustomization.yaml": "resources: [a]", "a/kustomization.yaml": "resources: [../b]"}
        | {"b/kustomization.yaml": "resources: [../a]"},
        "in a circle",
    ),
    "two files": ({"kustomization.yaml": "", "Kustomization": ""}, CANNOT),
    "no YAML": ({"kustomization.yaml": "resources: [\n"}, "kustomization.yaml"),
    "no objects": ({"kustomization.yaml": "resources: []"}, "found no objects"),
}


@pytest.mark.usefixtures("kustomize")
@pytest.mark.parametrize(("files", "words"), REFUSED.values(), ids=REFUSED)
def test_S26_what_is_not_of_the_tree_is_refused_in_words(files: dict[str, str], words: str) -> None:
    with pytest.raises(BadBundle) as caught:
        built(files)
    assert words in str(caught.value)
    assert CANARY not in caught.value.in_full
    assert "/tree" not in caught.value.in_full


@pytest.mark.usefixtures("kustomize")
def test_S37_nobody_is_asked_over_the_network() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for files in (resources(f"{address}/a.yaml"), resources(f"{address}/org/repo.git//a")):
        with pytest.raises(BadBundle, match=ELSEWHERE):
            built(files)
    with listener, pytest.raises(TimeoutError):
        listener.accept()


# Where kustomize's own words quote the value of a Secret.
QUOTING: dict[str, dict[str, str | bytes]] = {
    "a literal": {"kustomization.yaml": f"secretGenerator: [{{name: a, literals: [{CANARY}]}}]"},
    "a line": {
        "kustomization.yaml": "secretGenerator: [{name: a, envs: [e]}]",
        "e": CANARY.encode() + b"\xff\xff=1\n",
    },
    "a file": {"kustomization.yaml": f"secretGenerator: [{{name: a, files: ['k={CANARY}=c']}}]"},
    "a patch": {"kustomization.yaml": f"resources: [s]\npatches: [{{patch: 'kind: Secret {CANARY}: ['}}]", "s": SECRET},
    "a JSON patch": {
        "kustomization.yaml": f'resources: [s]\npatches: [{{patch: \'[{{"op": "add", "value": "{CANARY}"}}]\'}}]',
        "s": SECRET,
    },
    "a replacement": {
        "kustomization.yaml": (
            "resources: [s]\nreplacements: [{source: {kind: Secret, fieldPath: stringData.password, options: {delimiter:"
            " /, index: 5}}, targets: [{select: {kind: Secret}, fieldPaths: [metadata.name]}]}]"
        ),
        "s": SECRET,
    },
    "a tag": {"kustomization.yaml": "resources: [s]", "s": SECRET.replace(CANARY, f"!!int {CANARY}")},
    "an alias": {"kustomization.yaml": "resources: [s]", "s": SECRET.replace(CANARY, f"*{CANARY}")},
    "a generator in line": {
        "kustomization.yaml": f"generators: ['apiVersion: builtin\n\n  kind: SecretGenerator\n\n  literals: [{CANARY}]']"
    },
}


@pytest.mark.usefixtures("kustomize")
@pytest.mark.parametrize("files", QUOTING.values(), ids=QUOTING)
def test_S38_the_words_of_kustomize_tell_no_value_of_a_secret(files: dict[str, str | bytes]) -> None:
    raw = engine.build({path: text.encode() if isinstance(text, str) else text for path, text in files.items()}, "")
    assert CANARY in raw.refusal
    with pytest.raises(BadBundle) as caught:
        built(files)
    assert CANARY not in caught.value.in_full


@pytest.mark.usefixtures("kustomize")
def test_a_long_chain_of_bases_is_built() -> None:
    chain = {f"b{number}/kustomization.yaml": f"resources: [../b{number + 1}]" for number in range(300)}
    chain |= {"kustomization.yaml": "resources: [b0]", "b300/kustomization.yaml": "resources: [a]", "b300/a": SERVICE}
    assert len(built(chain).manifests) == 1


GROWING = {
    "aliases": resources("a.yaml")
    | {
        "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9))
    },
    "doubling": {"kustomization.yaml": "resources: [l0a, l0b]\n", "l12a/s.yaml": SERVICE, "l12b/s.yaml": SERVICE}
    | {
        f"l{level}{side}/kustomization.yaml": (
            f"namePrefix: {side}-\nresources: [{'s.yaml' if level == 12 else f'../l{level + 1}a, ../l{level + 1}b'}]\n"
        )
        for level in range(13)
        for side in "ab"
    },
}


@pytest.mark.thorough
@pytest.mark.usefixtures("kustomize")
@pytest.mark.parametrize("files", GROWING.values(), ids=GROWING)
def test_S26_what_grows_without_end_is_ended(files: dict[str, str]) -> None:
    with pytest.raises((BundleTooLarge, TryLater)):  # later where the machine is so busy that it took a minute
        built(files)


def child(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is started be this Python instead, whatever the program is."""
    pipe = subprocess.PIPE

    def start(module: str, **_environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, bufsize=0)

    monkeypatch.setattr(own_programs, "started", start)
    monkeypatch.setattr("shutil.which", lambda _name: "/bin/program")


ANSWER = '{"version": "%s", "objects": [], "used": [], "error": ""}'
MISBEHAVING: dict[str, tuple[str, type[Exception], str]] = {
    "killed": ("import os; os.kill(os.getpid(), 9)", TryLater, "somebody ended what builds it (signal 9, after 0 s"),
    "endless": (
        "import sys; sys.stdin.read()\nwhile True: print('x' * 65536)",
        BundleTooLarge,
        "builds more than 1 MiB",
    ),
    "mute": ("import time; time.sleep(60)", TryLater, "too busy to build the kustomization within 1 s"),
    "out of time": (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (2, 2))\nwhile True: pass",
        BundleTooLarge,
        "took more than 1 s of processor time",
    ),
    "out of memory": ("import os; os._exit(2)", BundleTooLarge, "needs more than 384 MiB"),
    "not to be run": ("import os; os._exit(1)", BadBundle, "/bin/program could not be run"),
    "without an answer": ("print('{}')", BadBundle, "ended without an answer"),
    "another version": (f"print('{ANSWER % 'v0.1.0'}')", BadBundle, "has kustomize 'v0.1.0'; expected v0.21.2"),
}


@pytest.mark.parametrize(("code", "error", "words"), MISBEHAVING.values(), ids=MISBEHAVING)
def test_a_program_that_misbehaves_is_ended_and_said(
    code: str, error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    child(code, monkeypatch)
    monkeypatch.setattr(engine, "MAX_OUTPUT_BYTES", 2**20)
    monkeypatch.setattr(engine, "WALL_SECONDS", 60.0 if "RLIMIT_CPU" in code else 1.0)
    monkeypatch.setattr(engine, "CPU_SECONDS", 1)
    with pytest.raises(error) as caught:
        engine.build({"kustomization.yaml": b"x" * 1_000_000}, "")
    assert words in str(caught.value)
