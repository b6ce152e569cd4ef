"""An approved request on its way into the cluster, and how it ends."""
