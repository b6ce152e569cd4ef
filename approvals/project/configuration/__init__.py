"""The settings that an operator gives in environment variables: the table of them, and how they are read."""

from approvals.project.configuration.reading import read
from approvals.project.configuration.secrets import secrets_of
from approvals.project.configuration.table import PREFIX, SETTINGS, Setting

__all__ = ["PREFIX", "SETTINGS", "Setting", "read", "secrets_of"]
