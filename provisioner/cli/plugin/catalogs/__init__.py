"""`catalog`: catalogs of the cluster, their packages, and what would change from one version to another."""

from provisioner.cli.plugin.catalogs.looking import EPILOG, HELP, add, run

__all__ = ["EPILOG", "HELP", "add", "run"]
