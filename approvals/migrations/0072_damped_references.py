"""Until when a server does not want to be asked about a reference, and one that moves too often makes no request."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0071_search_index"),
    ]

    operations = [
        migrations.AddField(
            model_name="floatingreference",
            name="rests_until",
            field=models.DateTimeField(
                blank=True, help_text="until when its server does not want to be asked (Retry-After)", null=True
            ),
        ),
        migrations.AddField(
            model_name="referencefollower",
            name="rests_until",
            field=models.DateTimeField(
                blank=True,
                help_text="it moved too often: until when no further request is made because of it",
                null=True,
            ),
        ),
    ]
