"""Keys that are there twice and are taken: the text, its value, and effect, lines and path of each."""

from __future__ import annotations

from typing import Any

TAKEN_TWICE: dict[str, tuple[str, Any, list[str]]] = {
    "equal texts": ("a: x\nb: 1\na: 'x'\n", {"a": "x", "b": 1}, ["equal 1 3 a"]),
    "equal mappings": ("a: {b: 1, c: [1.0]}\na: {c: [1], b: 1}\n", {"a": {"b": 1, "c": [1]}}, ["equal 1 2 a"]),
    "equal in lists": ("a:\n- b\n- c: 1\n  c: 1\n", {"a": ["b", {"c": 1}]}, ["equal 3 4 a[1].c"]),
    "in both": ("a: {b: 1, b: 1}\na: {b: 1, b: 1}", {"a": {"b": 1}}, ["equal 1 1 a.b", "equal 1 2 a", "equal 2 2 a.b"]),
    "equal in two spellings": ("1: x\n'1': x\n", {"1": "x"}, ["equal 1 2 1"]),
    "three times": ("a: 1\na: 1\na: 1\n", {"a": 1}, ["equal 1 2 a", "equal 2 3 a"]),
    "first null": ("a:\na: 1\n", {"a": 1}, ["filled 1 2 a"]),
    "first a text": ("a: ''\na: {b: 1}\n", {"a": {"b": 1}}, ["filled 1 2 a"]),
    "then null": ("a: 1\na: ~\n", {"a": None}, ["emptied 1 2 a"]),
    "then a mapping": ("a: {b: 1}\na: {}\n", {"a": {}}, ["emptied 1 2 a"]),
    "then a list": ("a: [1]\na: []\n", {"a": []}, ["emptied 1 2 a"]),
    "two of nothing": ("a: {}\na: []\n", {"a": []}, ["emptied 1 2 a"]),
    "spellings that are one key": ("yes: x\non:\n", {"true": None}, ["emptied 1 2 true"]),
    "by an alias": ("x: &x {b: 1}\na: *x\na: *x\n", {"x": {"b": 1}, "a": {"b": 1}}, ["equal 2 3 a"]),
    "merged later": ("a: 1\na: 1\n<<: {a: 2}\n", {"a": 2}, ["equal 1 2 a"]),
    "in JSON": ('{"a": {\n"b": 1,\n"b": null}}', {"a": {"b": None}}, ["emptied 2 3 a.b"]),
}  # fmt: skip
