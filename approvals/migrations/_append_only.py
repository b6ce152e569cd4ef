"""Triggers of the database that refuse any change of a table (0002), for migrations after it. No migration itself."""

REVIEWS = "approvals_review"


def keep_append_only(apps, schema_editor):
    """Put back those of the reviews where SQLite made their table anew; PostgreSQL alters it in place and keeps them."""
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
