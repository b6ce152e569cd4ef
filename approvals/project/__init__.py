"""Wiring: settings, URLs, Celery, WSGI. Nothing imports it."""
