"""`catalog`: catalogs of the cluster, their packages, and what would change from one version to another.

- `looking`: `catalog list` and `show`, and the way to `diff`
- `comparing`: `catalog diff`, which the service works out
"""

from provisioner.cli.plugin.catalogs.looking import EPILOG, HELP, add, run

__all__ = ["EPILOG", "HELP", "add", "run"]
