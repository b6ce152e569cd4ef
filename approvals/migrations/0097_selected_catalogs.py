"""By which labels sources of deployments select among catalogs, and which sources do."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0096_engine")]

    operations = [
        migrations.AddField(
            model_name="catalog",
            name="labels",
            field=models.JSONField(
                db_default={}, default=dict, help_text="by which sources of deployments select it"
            ),
        ),
        migrations.AddField(
            model_name="followedpackage",
            name="is_selected",
            field=models.BooleanField(
                db_default=False, default=False, help_text="whether it selects among catalogs"
            ),
        ),
        migrations.AlterField(
            model_name="followedpackage",
            name="catalog",
            field=models.CharField(blank=True, max_length=253),
        ),
    ]
