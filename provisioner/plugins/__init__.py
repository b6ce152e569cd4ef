"""Formats, sources and checks of other packages: found, loaded and run so that a broken one stops nothing else.

A plug-in is an entry point of one of three groups. It is code that the operator installed and trusts, so nothing keeps
it from what this process may do. But whatever it raises or returns, and if it never returns, is a PluginFailed that
names it: no crash, and no silence.
"""

from provisioner.plugins.entry_points import MAX_NAME, Plugin, PluginGroup, installed
from provisioner.plugins.plugin_calls import LOAD_SECONDS, call, load, tried

__all__ = ["LOAD_SECONDS", "MAX_NAME", "Plugin", "PluginGroup", "call", "installed", "load", "tried"]
