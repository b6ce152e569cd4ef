from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0095_rotation")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="engine",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="the version of the Helm that rendered the chart, such as v4.2.3; empty where none did",
                max_length=40,
            ),
        ),
        migrations.AddField(
            model_name="request",
            name="helm_3_differs",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
