"""Formats of other packages: their objects obey the same rules, and a broken one stops no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provisioner.errors import BadBundle, BundleTooLarge, InvalidManifest, PluginFailed
from provisioner.plugins import PluginGroup
from provisioner.render import Rendering, YamlLimits, format_names, format_plugins, render_content
from provisioner.render.targets import BUILT_IN
from provisioner.values import Tree, UnusedFiles
from tests.support.plugins import PluginPath

TABLE = b'{"ports": [{"name": "west", "metres": 4.2}, {"name": "east", "metres": 3}]}'
IMPORTS = """
from provisioner.errors import BadBundle, BadSource
from provisioner.render import Found, Rendered
from provisioner.values import Requirement

def object_(name="a", **meta):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}

def endless():
    number = 0
    while True:
        number += 1
        yield Found(object_(f"n{number}"), "x")

def failing():
    yield Found(object_(), "x")
    raise SystemExit("Pl4nted")

circle = object_()
circle["data"] = circle

class Liar(dict):
    def items(self):
        raise KeyError("Pl4nted")

    __iter__ = keys = values = __getitem__ = items

def render(tree, rendering):
    return """
SOUND = "Rendered([Found(object_(), 'x')], used=['x'])"


def asked(name: str, limits: YamlLimits | None = None, **config: Any) -> Rendering:
    return Rendering(name, "home", "installer", BUILT_IN.get, config=config, limits=limits or YamlLimits())


def made(plugin_path: PluginPath, code: str, limits: YamlLimits | None = None, **config: Any) -> Any:
    plugin_path.add("cards", {PluginGroup.FORMATS: {"tarot": "cards:render"}}, f"{IMPORTS}{code}")
    return render_content(Tree({"x": b"1", "y.yaml": b"2"}), asked("tarot", limits, **config), pins=[])


def test_a_format_that_pip_installed_renders(tides: Path) -> None:
    tree = Tree({"tides.json": TABLE, "notes.txt": b""})
    content = render_content(tree, asked("tide-table", labels={"sea": "north"}), pins=[])
    refs = [str(one.ref) for one in content.manifests]
    assert refs == ["ConfigMap home/tide-east", "ConfigMap home/tide-west"]
    assert content.manifests[0].body["metadata"]["labels"] == {"sea": "north"}
    assert content.unused == UnusedFiles(1, 0, ("notes.txt",))
    assert "tide-table" in format_names()


def test_what_a_format_says_is_wrong_with_a_bundle_is_said_in_its_name(tides: Path) -> None:
    words = (
        "^the format tide-table of the package pratique-tides 1.0.0: there is no tides.json; expected one in a source$"
    )
    with pytest.raises(BadBundle, match=words):
        render_content(Tree({}), asked("tide-table"), pins=[])


def test_the_objects_of_a_plugin_obey_the_same_rules(plugin_path: PluginPath) -> None:
    with pytest.raises(InvalidManifest, match=r"tarot of the package cards 1: x: ConfigMap a: metadata\.uid"):
        made(plugin_path, "Rendered([Found(object_(uid='1'), 'x')], used=[])")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param("None", "it returned a NoneType; expected Rendered", id="nothing"),
        pytest.param("[object_()]", "it returned a list; expected Rendered", id="bare objects"),
        pytest.param("Rendered(None, used=[])", "TypeError", id="no objects at all"),
        pytest.param("Rendered([object_()], used=[])", "its objects hold a dict; expected Found", id="no Found"),
        pytest.param("Rendered([Found(object_(), 7)], used=[])", "no sound place", id="a place that is no text"),
        pytest.param("Rendered([Found(object_(), 'a\\n')], used=[])", "no sound place", id="a place of two lines"),
        pytest.param("Rendered([Found(object_(), 'x')], used=['z'])", "used a file that is not", id="a strange file"),
        pytest.param("Rendered([Found(object_(), 'x')], used=[{}])", "TypeError", id="used is no path"),
        pytest.param("Rendered([], [], [1])", "its requirements are not sound", id="no requirement"),
        pytest.param("Rendered([], [], [Requirement('x')])", "its requirements are not sound", id="a strange kind"),
        pytest.param("Rendered([Found(Liar(a=1), 'x')], used=[])", "KeyError", id="a mapping that is none"),
        pytest.param("Rendered(failing(), used=[])", "SystemExit", id="ends the process midway"),
        pytest.param("render(tree, rendering)", "RecursionError", id="recursion"),
    ],
)
def test_nonsense_is_named_and_other_formats_go_on(code: str, words: str, plugin_path: PluginPath) -> None:
    with pytest.raises(PluginFailed, match=f"the format tarot of the package cards 1 failed.*{words}") as caught:
        made(plugin_path, code)
    assert "Pl4nted" not in str(caught.value)
    manifest = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    assert render_content(Tree({"a.yaml": manifest}), asked("plain"), pins=[]).manifests


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param("Rendered([], used=[])", "found no objects", id="no objects"),
        pytest.param("Rendered([Found(None, 'x')], used=[])", "is no Kubernetes object", id="no object"),
        pytest.param("Rendered([Found({1: 2}, 'x')], used=[])", "a key is a int", id="a key that is no text"),
        pytest.param("Rendered([Found(object_(x={1}), 'x')], used=[])", "a set is no JSON value", id="no JSON"),
        pytest.param("Rendered([Found(object_(), 'x')] * 2, used=[])", "is in x already", id="the same twice"),
        pytest.param("Rendered([Found(circle, 'x')], used=[])", "nested deeper", id="a circle"),
        pytest.param("Rendered(endless(), used=[])", "max_objects", id="without end"),
    ],
)
def test_what_is_no_bundle_is_refused_in_the_name_of_the_format(code: str, words: str, plugin_path: PluginPath) -> None:
    with pytest.raises(BadBundle, match=rf"^the format tarot of the package cards 1: [\s\S]*{words}"):
        made(plugin_path, code, YamlLimits(max_objects=50))


def test_too_much_keeps_its_code(plugin_path: PluginPath) -> None:
    with pytest.raises(BundleTooLarge):
        made(plugin_path, "Rendered(endless(), used=[])", YamlLimits(max_objects=50))


def test_an_error_that_a_format_may_not_raise_is_a_failure(plugin_path: PluginPath) -> None:
    with pytest.raises(PluginFailed, match="BadSource"):
        made(plugin_path, "(_ for _ in ()).throw(BadSource('x'))")


def test_what_a_format_changes_stays_its_own(plugin_path: PluginPath) -> None:
    config = {"deep": {"kept": 1}}
    code = f"(tree.files.clear(), rendering.config['deep'].clear()) and {SOUND.replace(chr(39) + 'x' + chr(39) + ']', ']')}"
    content = made(plugin_path, code, **config)
    assert config == {"deep": {"kept": 1}}
    assert content.unused.paths == ("y.yaml", "x")


def test_a_name_of_ours_stays_ours(plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {PluginGroup.FORMATS: {"plain": "cards:render"}}, f"{IMPORTS}{SOUND}")
    with pytest.raises(BadBundle, match="found no manifests"):
        render_content(Tree({}), asked("plain"), pins=[])
    assert "Pratique has a format of this name itself" in format_plugins()[0].problem


def test_of_two_formats_of_one_name_neither_renders(plugin_path: PluginPath) -> None:
    plugin_path.add("fortunes", {PluginGroup.FORMATS: {"tarot": "fortunes:tell"}}, "")
    with pytest.raises(PluginFailed, match="cards 1, fortunes 1 bring a format of this name"):
        made(plugin_path, SOUND)


def test_a_format_that_cannot_be_loaded_is_known_and_says_so(plugin_path: PluginPath) -> None:
    with pytest.raises(PluginFailed, match="the format tarot of the package cards 1 is disabled"):
        made(plugin_path, "(")
    assert "SyntaxError" in format_plugins()[0].problem
