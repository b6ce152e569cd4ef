"""Triggers of the database: audit entries, reviews, their dismissals and verdicts are written once (promises 5 and 7,
security-rules.md S21). No migration itself."""

REVIEWS = "approvals_review"
FROZEN = ("approvals_auditentry", REVIEWS, "approvals_verdict", "approvals_dismissal")


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


def keep_append_only(apps, schema_editor):
    """Put back the triggers of reviews where SQLite made their table anew; PostgreSQL alters it in place and keeps them."""
    if schema_editor.connection.vendor == "sqlite":
        freeze(schema_editor, REVIEWS)


def freeze(schema_editor, table):
    if schema_editor.connection.vendor == "sqlite":
        for operation in ("UPDATE", "DELETE"):
            schema_editor.execute(
                f"CREATE TRIGGER IF NOT EXISTS {table}_no_{operation.lower()} BEFORE {operation} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        return
    for operation, each in (("UPDATE", "ROW"), ("DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
        schema_editor.execute(
            f"CREATE TRIGGER {table}_no_{operation.lower()} BEFORE {operation} ON {table} "
            f"FOR EACH {each} EXECUTE FUNCTION approvals_refuse_change()"
        )


def thaw(schema_editor, table):
    vendor = schema_editor.connection.vendor
    for operation in ("update", "delete", *(("truncate",) if vendor == "postgresql" else ())):
        on = f" ON {table}" if vendor == "postgresql" else ""
        schema_editor.execute(f"DROP TRIGGER {table}_no_{operation}{on}")
