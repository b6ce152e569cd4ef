"""The index from which the audit is listed by verb. PostgreSQL builds it while others write; begun again if broken off."""

from django.db import migrations, models

INDEX = models.Index(fields=["verb", "-number"], name="audit_verb")


def build(apps, schema_editor):
    entry = apps.get_model("approvals", "AuditEntry")
    if schema_editor.connection.vendor != "postgresql":
        schema_editor.add_index(entry, INDEX)
        return
    # What an interrupted run leaves behind is no index.
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX.name}")
    schema_editor.add_index(entry, INDEX, concurrently=True)


def drop(apps, schema_editor):
    schema_editor.remove_index(apps.get_model("approvals", "AuditEntry"), INDEX)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("approvals", "0067_hooks")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(build, drop)],
            state_operations=[migrations.AddIndex("auditentry", INDEX)],
        )
    ]
