"""Django's admin site: a window, not a door. Everything of ours is read-only here (security.md S21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest

from approvals.models import ApiToken, ChatDelivery, Cluster, LinkCode, Report

# Columns that hold credentials, or live values of a cluster, stay out of sight altogether.
HIDDEN = {
    Cluster: ("kubeconfig",),
    ApiToken: ("digest",),
    LinkCode: ("digest",),
    Report: ("body",),
    ChatDelivery: ("wish",),
    User: ("password",),
}


if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin


class ReadOnly(Base):
    def get_exclude(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return HIDDEN.get(self.model, ())

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


# A site of our own holds nothing but these. Who can set a password can be that person, so accounts are read-only, too:
# `manage.py map_identity` and `changepassword` keep them.
site = admin.AdminSite(name="admin")
models: list[type[Model]] = [User, *apps.get_app_config("approvals").get_models()]
site.register(models, ReadOnly)
