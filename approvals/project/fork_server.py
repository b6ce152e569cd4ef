"""What a worker's processes of their own are forked from: all code is loaded here once, and no thread is started.

Python's multiprocessing imports this module in a process that a worker starts; nobody else does. What is loaded is
shared by all that are forked. No connection is opened in here, to the database, the queue or a cluster: each process
opens its own.
"""

from __future__ import annotations

import gc
import os
import warnings

import celery.events  # noqa: F401 - with the rest of what sends a message
import django
from django.conf import settings
from django.db import connection

# What kills the worker's group does not kill these: they notice, give their claims back and end.
os.setsid()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
django.setup()

import provisioner.cluster.client.connection  # noqa: E402, F401 - after the apps; else each process loads it
from approvals import logs, tasks  # noqa: E402, F401 - the apps have to be loaded first
from approvals.buckets.connection import load as load_buckets  # noqa: E402 - the apps have to be loaded first
from approvals.project.celery import app  # noqa: E402 - the apps have to be loaded first
from approvals.working import linux, subprocess_main  # noqa: E402, F401 - after the apps; loaded for the forked
from provisioner import plugins  # noqa: E402 - after the apps
from provisioner.schema.cel import type_check  # noqa: E402, F401 - after the apps; else the first rule loads it
from provisioner.source import certificates, git_remote  # noqa: E402, F401 - loaded once for all forked children

logs.take_over("worker", settings.PRATIQUE["LOG_FORMAT"])
linux.use_few_arenas()
# Evaluators outlive the process that used them by a moment. In a container the worker itself is process 1, which waits
# for nobody: they would stay zombies until no process could be started any more. Multiprocessing waits for all.
linux.adopt_orphans()
warnings.filterwarnings("ignore", message="forkserver: waitpid returned unexpected pid")
# What Celery and Django load with the first message and the first query: it took longer than a small preparation.
_loaded = (app.amqp, app.backend, app.connection_for_write().transport_cls)
_compiler = connection.ops.compiler("SQLCompiler")
if settings.BUCKET:
    load_buckets()
# Which there are; none of them is loaded here.
_plugins = [plugins.installed(group, ()) for group in plugins.PluginGroup]
# Whoever is forked leaves what is loaded alone, so that it stays shared.
gc.collect()
gc.freeze()
