"""Triggers: audit entries, reviews and verdicts are written once (promises 5 and 7, security-rules.md S21)."""

from django.db import migrations

FROZEN = ("approvals_auditentry", "approvals_review", "approvals_verdict")


def create(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    if vendor == "postgresql":
        schema_editor.execute(
            "CREATE FUNCTION approvals_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; END $$",
            params=None,
        )
    for table in FROZEN:
        for operation in ("UPDATE", "DELETE"):
            name = f"{table}_no_{operation.lower()}"
            if vendor == "postgresql":
                schema_editor.execute(
                    f"CREATE TRIGGER {name} BEFORE {operation} ON {table} "
                    "FOR EACH ROW EXECUTE FUNCTION approvals_refuse_change()"
                )
            else:
                schema_editor.execute(
                    f"CREATE TRIGGER {name} BEFORE {operation} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
                )
        if vendor == "postgresql":
            schema_editor.execute(
                f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION approvals_refuse_change()"
            )


def drop(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    for table in FROZEN:
        operations = ("update", "delete", "truncate") if vendor == "postgresql" else ("update", "delete")
        for operation in operations:
            on = f" ON {table}" if vendor == "postgresql" else ""
            schema_editor.execute(f"DROP TRIGGER {table}_no_{operation}{on}")
    if vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION approvals_refuse_change()")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_records")]
    operations = [migrations.RunPython(create, drop)]
