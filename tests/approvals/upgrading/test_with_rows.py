"""Every table of the last release is filled, and upgraded: nothing is lost, and who runs it still can go on writing."""

from __future__ import annotations

import base64
import hashlib

import pytest

from tests.support.approvals.databases import manage

# The last migration before decisions became objects of Kubernetes.
FROM = "0097_selected_catalogs"
KEY = base64.b64encode(hashlib.sha256(b"only for tests").digest()).decode()
UPGRADE = r"""
import uuid
from django.apps import apps as present
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

call_command("migrate", "approvals", FROM, verbosity=0)
past = MigrationLoader(connection).project_state(("approvals", FROM)).apps
tables = list(past.get_app_config("approvals").get_models(include_auto_created=True))
VALUES = {
    models.DateTimeField: lambda number: timezone.now(), models.UUIDField: lambda number: uuid.uuid4(),
    models.BooleanField: lambda number: True, models.BinaryField: lambda number: b"\0salt",
    models.IntegerField: lambda number: number,
}

def value_of(field, number, made):
    if field.is_relation:
        return made[field.related_model] if field.related_model in made else fill(field.related_model, number, made)
    if field.choices:
        return field.choices[0][0]
    if "JSON" in type(field).__name__:
        return {"number": number}
    if "Text" in type(field).__name__ or isinstance(field, models.CharField):
        return f"{field.name}-{number}"[:field.max_length]
    return next(value(number) for kind, value in VALUES.items() if isinstance(field, kind))

def fill(model, number, made):
    '''A row with everything that has to be said, and with whatever that needs.'''
    said = {}
    for field in model._meta.concrete_fields:
        is_left_out = field.null or field.blank or field.has_default() or isinstance(field, models.AutoField)
        if field.primary_key and not isinstance(field, models.AutoField) or not is_left_out:
            said[field.name] = value_of(field, number, made)
    if model.__name__ == "Proof":
        said["sign_in"] = value_of(model._meta.get_field("sign_in"), number, made)
    made[model] = model.objects.create(**said)
    return made[model]

def fill_all(number):
    made = {}
    for model in tables:
        if model not in made:
            fill(model, number, made)

def read():
    found = {}
    for model in tables:
        columns = ", ".join(f'"{field.column}"' for field in model._meta.concrete_fields)
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT {columns} FROM "{model._meta.db_table}" ORDER BY 1')
            found[model.__name__] = repr(cursor.fetchall())
    return found

fill_all(1)
before = read()
print("filled", all(model.objects.count() == 1 for model in tables))
call_command("migrate", verbosity=0)
print("kept", [name for name, rows in read().items() if rows != before[name]])
# A process of the version before knows no column that is new.
fill_all(2)
now = [present.get_model("approvals", model.__name__) for model in tables]
print("read", all(len(list(model.objects.all())) == 2 for model in now))
"""


@pytest.mark.thorough
def test_every_table_of_the_last_release_keeps_its_rows_and_takes_those_of_a_process_of_that_release(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRATIQUE_ENCRYPTION_KEYS", KEY)
    said = manage(database_url, "shell", "--verbosity", "0", "-c", f"FROM = {FROM!r}\n{UPGRADE}")
    assert said.splitlines()[-3:] == ["filled True", "kept []", "read True"]
