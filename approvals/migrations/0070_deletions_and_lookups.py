"""Until when a deletion may still happen."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0069_floating_references"),
    ]

    operations = [
        migrations.AddField(
            model_name="content",
            name="deleting_until",
            field=models.DateTimeField(
                blank=True,
                help_text="until when a deletion of its bytes that was asked for may still happen",
                null=True,
            ),
        ),
    ]
