"""`python -m tests.support.program MODULE ...`: run a module of the tests as a program of its own, with Django's settings loaded.

So that it can import models at its top, as every other module does.
"""

from __future__ import annotations

import os
import runpy
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
    django.setup()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
