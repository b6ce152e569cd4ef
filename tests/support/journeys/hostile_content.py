"""Specs and contents of strangers, each small, each made to exhaust the worker that prepares it."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.journeys.contents import bundles

MIB = 1024 * 1024
DOUBLING = "[kubernetes_version]" + ".map(a, a + a)" * 26 + ".size() > 0"
FOREVER = "apis.all(a, apis.all(b, apis.all(c, apis.all(d, apis.all(e, (a + b + c + d + e).size() > 0)))))"


def packed(files: Mapping[str, bytes]) -> bytes:
    """A .tar.gz of these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def harmless(name: str) -> bytes:
    return packed(bundles.app(name, "1"))


def _of(*objects: Any) -> bytes:
    return packed({"manifests/all.yaml": yaml.safe_dump_all(objects).encode()})


def _raw(text: str) -> bytes:
    return packed({"manifests/all.yaml": text.encode()})


def _zeros(name: str) -> bytes:
    """Half a gigabyte in half a megabyte."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as stream:
        entry = tarfile.TarInfo("manifests/zeros.yaml")
        entry.size = 512 * MIB
        stream.write(entry.tobuf())
        for _ in range(512):
            stream.write(bytes(MIB))
    return out.getvalue()


def _many_files(name: str) -> bytes:
    return packed({f"manifests/{number}.yaml": b"" for number in range(100_000)})


def _aliases(name: str) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    return _raw("\n".join(lines))


def _nesting(name: str) -> bytes:
    return _raw("kind: " + "[" * 1_000_000)


def _digits(name: str) -> bytes:
    return _raw(f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  generation: {'9' * 3_000_000}\n")


def _rights(name: str) -> bytes:
    words = [f"w{number}" for number in range(400)]
    rule = {"apiGroups": words, "resources": words, "verbs": words}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    return _of({**role, "rules": [rule] * 20})


def _definition(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    return bundles.definition(f"{name}.example.com", "Costly", schema=schema, scope="Cluster")


def _patterns(name: str) -> bytes:
    """Repetitions of repetitions: an automaton of millions of states."""
    texts = {
        f"f{number}": {"type": "string", "pattern": f"^((((x{{0,{90 + number}}}){{0,90}}){{0,90}}))y$"}
        for number in range(50)
    }
    costly = {"apiVersion": f"{name}.example.com/v1", "kind": "Costly", "metadata": {"name": name}}
    values = dict.fromkeys(texts, "x" * 20_000)
    return _of(_definition(name, {"properties": texts}), {**costly, "spec": values})


def _rules(name: str) -> bytes:
    """CEL of a schema, over lists in lists."""
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(6):
        deep = {"type": "array", "items": deep}
    rule = "self.l.all(a, a.all(b, b.all(c, c.all(d, d.all(e, e.all(f, self.l.exists(g, g.size() > f.size())))))))"
    spec = {"properties": {"l": deep}, "x-kubernetes-validations": [{"rule": rule}] * 20}
    value: Any = ["x"] * 6
    for _ in range(5):
        value = [value] * 6
    costly = {"apiVersion": f"{name}.example.com/v1", "kind": "Costly", "metadata": {"name": name}}
    return _of(_definition(name, spec), {**costly, "spec": {"l": value}})


# What makes the content, and what of the spec is more than its source.
HOSTILE: dict[str, tuple[Callable[[str], bytes], dict[str, Any]]] = {
    "doubling": (harmless, {"constraints": {"cel": [{"expression": DOUBLING}]}}),
    "forever": (harmless, {"constraints": {"cel": [{"expression": FOREVER}]}}),
    "zeros": (_zeros, {}),
    "many-files": (_many_files, {}),
    "aliases": (_aliases, {}),
    "nesting": (_nesting, {}),
    "digits": (_digits, {}),
    "rights": (_rights, {}),
    "patterns": (_patterns, {}),
    "rules": (_rules, {}),
}


def spec(folder: Path, address: str, name: str, namespace: str, data: bytes, more: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a BundleDeployment whose content is `data`, kept in `folder`, which is served at `address`."""
    file = f"{name}.tar.gz"
    (folder / file).write_bytes(data)
    source = {"kind": "http", "http": {"url": f"{address}/{file}"}}
    return {"installNamespace": namespace, "serviceAccountName": "installer", "sources": [source], **more}
