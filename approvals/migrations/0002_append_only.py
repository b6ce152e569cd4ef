"""Triggers: audit entries, reviews and verdicts are written once (promises 5 and 7, security-rules.md S21)."""

from django.db import migrations

from approvals.migrations._append_only import freeze, thaw

FROZEN = ("approvals_auditentry", "approvals_review", "approvals_verdict")


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "CREATE FUNCTION approvals_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; END $$",
            params=None,
        )
    for table in FROZEN:
        freeze(schema_editor, table)


def drop(apps, schema_editor):
    for table in FROZEN:
        thaw(schema_editor, table)
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION approvals_refuse_change()")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_records")]
    operations = [migrations.RunPython(create, drop)]
