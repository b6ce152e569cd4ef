"""Catalogues that clusters name, and what was read from them."""

import approvals.packed
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0072_damped_references'),
    ]

    operations = [
        migrations.CreateModel(
            name='Catalog',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('generation', models.PositiveBigIntegerField()),
                ('resource_version', models.CharField(max_length=63)),
                ('spec', models.JSONField()),
                ('writer', models.JSONField(default=dict, help_text='who wrote the spec, as requesters are kept; empty: not known')),
                ('status', models.JSONField(default=dict, help_text='what the cluster was told last')),
                ('seen_at', models.DateTimeField()),
                ('etag', models.CharField(blank=True, max_length=510)),
                ('looked_at', models.DateTimeField(blank=True, help_text='when the last look that succeeded began', null=True)),
                ('tried_at', models.DateTimeField(blank=True, null=True)),
                ('look_at', models.DateTimeField(blank=True, help_text='when to look again; null: never', null=True)),
                ('show_at', models.DateTimeField(blank=True, help_text='since when the cluster is to be told; null: it was', null=True)),
                ('failures', models.PositiveIntegerField(default=0, help_text='looks that failed since the last one that succeeded')),
                ('problem_code', models.CharField(blank=True, max_length=60)),
                ('problem', models.TextField(blank=True)),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='catalogs', to='approvals.cluster')),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='CatalogEdition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=80)),
                ('began_at', models.DateTimeField()),
                ('read_at', models.DateTimeField(blank=True, null=True)),
                ('package_count', models.PositiveIntegerField(default=0)),
                ('channel_count', models.PositiveIntegerField(default=0)),
                ('bundle_count', models.PositiveIntegerField(default=0)),
                ('problem_count', models.PositiveIntegerField(default=0)),
                ('problems', approvals.packed.PackedJSONField(default=list, help_text='where and words of each')),
                ('catalog', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='editions', to='approvals.catalog')),
            ],
        ),
        migrations.AddField(
            model_name='catalog',
            name='edition',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='approvals.catalogedition'),
        ),
        migrations.CreateModel(
            name='CatalogHistory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('package', models.CharField(max_length=253)),
                ('bundles', approvals.packed.PackedJSONField()),
                ('change_count', models.PositiveIntegerField(default=0)),
                ('catalog', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='history', to='approvals.catalog')),
            ],
        ),
        migrations.CreateModel(
            name='CatalogPackage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=253)),
                ('display_name', models.CharField(blank=True, max_length=253)),
                ('summary', models.CharField(blank=True, max_length=1000)),
                ('provider', models.CharField(blank=True, max_length=253)),
                ('default_channel', models.CharField(blank=True, max_length=253)),
                ('head', models.CharField(blank=True, help_text='the bundle in which the default channel ends', max_length=253)),
                ('head_version', models.CharField(blank=True, max_length=500)),
                ('channel_count', models.PositiveIntegerField()),
                ('bundle_count', models.PositiveIntegerField()),
                ('is_deprecated', models.BooleanField()),
                ('searched_text', models.TextField(help_text='in which a search looks, in small letters')),
                ('document', approvals.packed.PackedJSONField()),
                ('edition', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='packages', to='approvals.catalogedition')),
            ],
        ),
        migrations.CreateModel(
            name='CatalogPresentation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('description', models.TextField(blank=True)),
                ('icon', models.BinaryField(default=bytes)),
                ('icon_type', models.CharField(blank=True, max_length=40)),
                ('no_icon', models.CharField(blank=True, help_text='why the icon that it brings is not kept', max_length=500)),
                ('package', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='presentation', to='approvals.catalogpackage')),
            ],
        ),
        migrations.AddIndex(
            model_name='catalog',
            index=models.Index(condition=models.Q(('look_at__isnull', False)), fields=['look_at'], name='catalog_due'),
        ),
        migrations.AddIndex(
            model_name='catalog',
            index=models.Index(condition=models.Q(('show_at__isnull', False)), fields=['show_at'], name='catalog_to_show'),
        ),
        migrations.AddConstraint(
            model_name='catalog',
            constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='catalog_name_once_per_cluster'),
        ),
        migrations.AddConstraint(
            model_name='catalog',
            constraint=models.UniqueConstraint(fields=('cluster', 'uid'), name='catalog_uid_once_per_cluster'),
        ),
        migrations.AddConstraint(
            model_name='cataloghistory',
            constraint=models.UniqueConstraint(fields=('catalog', 'package'), name='history_once_per_package'),
        ),
        migrations.AddConstraint(
            model_name='catalogpackage',
            constraint=models.UniqueConstraint(fields=('edition', 'name'), name='package_once_per_edition'),
        ),
    ]
