"""From one version to the next, beside processes of the version before."""
