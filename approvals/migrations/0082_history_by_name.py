"""What is known of the versions of a catalog belongs to its name, so that it outlives the Catalog."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import OuterRef, Subquery


def by_name(apps, schema_editor):
    catalogs = apps.get_model("approvals", "Catalog").objects.filter(pk=OuterRef("catalog"))
    apps.get_model("approvals", "CatalogHistory").objects.update(
        cluster=Subquery(catalogs.values("cluster")[:1]), catalog_name=Subquery(catalogs.values("name")[:1])
    )


def forget(apps, schema_editor):
    apps.get_model("approvals", "CatalogHistory").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0081_keywords"),
    ]

    operations = [
        migrations.AddField(
            model_name="cataloghistory",
            name="cluster",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="approvals.cluster"
            ),
        ),
        migrations.AddField(
            model_name="cataloghistory",
            name="catalog_name",
            field=models.CharField(default="", max_length=253),
        ),
        migrations.AddField(
            model_name="cataloghistory",
            name="gone_at",
            field=models.DateTimeField(blank=True, help_text="since when there is no Catalog of this name", null=True),
        ),
        migrations.RunPython(by_name, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="cataloghistory", name="history_once_per_package"),
        migrations.RemoveField(model_name="cataloghistory", name="catalog"),
        migrations.AlterField(
            model_name="cataloghistory",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="approvals.cluster"
            ),
        ),
        migrations.AlterField(
            model_name="cataloghistory",
            name="catalog_name",
            field=models.CharField(max_length=253),
        ),
        migrations.AddConstraint(
            model_name="cataloghistory",
            constraint=models.UniqueConstraint(
                fields=("cluster", "catalog_name", "package"), name="history_once_per_package"
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, forget),
    ]
