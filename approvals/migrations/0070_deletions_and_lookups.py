"""Until when a deletion may still happen, and what charts were told of the cluster. Of older requests nobody knows it."""

import approvals.encryption.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0069_floating_references'),
    ]

    operations = [
        migrations.AddField(
            model_name='content',
            name='deleting_until',
            field=models.DateTimeField(blank=True, help_text='until when a deletion of its bytes that was asked for may still happen', null=True),
        ),
        migrations.AddField(
            model_name='request',
            name='lookups',
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.CreateModel(
            name='LookupAnswers',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('body', approvals.encryption.fields.EncryptedJSONField(bound_to=('request_id',), place='lookups of request')),
                ('request', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='lookup_answers', to='approvals.request')),
            ],
        ),
    ]
