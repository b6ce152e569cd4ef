"""Details of old requests and unneeded contents may go; when each was last stored, and when it went."""

from django.db import migrations, models
from django.db.models import F


def start(apps, schema_editor):
    apps.get_model("approvals", "Content").objects.update(used_at=F("created_at"))


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0058_deployment_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="content",
            name="used_at",
            field=models.DateTimeField(help_text="when it was last stored: what is about to get its request stays", null=True),
        ),
        migrations.AddField(
            model_name="content",
            name="removed_at",
            field=models.DateTimeField(
                blank=True, help_text="when its bytes went from the content store (PRATIQUE_KEEP_DAYS)", null=True
            ),
        ),
        migrations.AddField(
            model_name="request",
            name="cleared_at",
            field=models.DateTimeField(
                blank=True, help_text="when its report and other details went (PRATIQUE_KEEP_DAYS)", null=True
            ),
        ),
        migrations.RunPython(start, migrations.RunPython.noop),
    ]
