"""Of each part of a Catalog's source its author is kept. So far one person was the author of all of it.

Processes of the version before cannot write Catalogs any more: stop them first.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db import migrations, models


def by_part(apps: Any, schema_editor: Any) -> None:
    for row in apps.get_model("approvals", "Catalog").objects.all():
        if isinstance(row.authors, dict):
            said = {"format": row.spec.get("format"), **(row.spec.get("source") or {})}
            row.authors = [
                {"part": part, "value": value, "writer": row.authors} for part, value in _leaves(said, "") if value
            ]
            row.save(update_fields=["authors"])


def of_all(apps: Any, schema_editor: Any) -> None:
    """Where there are several, nobody is known any more."""
    for row in apps.get_model("approvals", "Catalog").objects.all():
        writers = [one["writer"] for one in row.authors]
        row.authors = writers[0] if writers and all(one == writers[0] for one in writers) else {}
        row.save(update_fields=["authors"])


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, "" if value is None else str(value)


class Migration(migrations.Migration):

    dependencies = [
        ("approvals", "0076_bundle_comparisons"),
    ]

    operations = [
        migrations.RenameField(model_name="catalog", old_name="writer", new_name="authors"),
        migrations.RunPython(by_part, of_all),
        migrations.AlterField(
            model_name="catalog",
            name="authors",
            field=models.JSONField(default=list, help_text="who wrote which part of the source, as requesters are kept; empty: not known"),
        ),
        migrations.AlterField(
            model_name="catalog",
            name="is_writer_proved",
            field=models.BooleanField(db_default=False, default=False, help_text="whether all who wrote the source were found to be allowed to get what it names"),
        ),
        migrations.AlterField(
            model_name="followedpackage",
            name="problem",
            field=models.TextField(blank=True, help_text="why nobody can tell what the catalog offers here"),
        ),
    ]
