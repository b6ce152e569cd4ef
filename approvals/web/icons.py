"""Icons of the package heroicons (MIT), inlined; a page without that package is whole, and has no icons."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from django import template
from django.utils.safestring import SafeString

try:
    _drawn: ModuleType | None = import_module("heroicons.templatetags.heroicons")
except ImportError:  # pages are whole without pictures
    _drawn = None

register = template.Library()
# What OpenShift's console colours alike: who may do what, what extends the API, what holds data.
KIND_GROUPS = {
    "rights": ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"),
    "extension": (
        *("CustomResourceDefinition", "APIService", "MutatingWebhookConfiguration"),
        *("ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    ),
    "data": ("Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "StatefulSet"),
}


@register.simple_tag
@cache
def icon(name: str, css: str = "icon") -> SafeString:
    """The outline icon of this name, hidden from screen readers: words stand beside it."""
    if _drawn is None:
        return SafeString("")
    attributes: dict[str, Any] = {"class": css, "aria-hidden": "true"}
    return SafeString(_drawn.heroicon_outline(name, **attributes))


@register.filter
def kind_letters(kind: str) -> str:
    """`CM` of `ConfigMap`, `D` of `Deployment`: its capitals, at most three."""
    return "".join(letter for letter in kind if letter.isupper())[:3] or kind[:1].upper()


@register.filter
def kind_class(kind: str) -> str:
    """The CSS class of what kinds of its sort are coloured as."""
    group = next((name for name, kinds in KIND_GROUPS.items() if kind in kinds), "")
    return f" kind-{group}" if group else ""
