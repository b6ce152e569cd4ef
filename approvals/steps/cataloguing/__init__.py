"""What is done for a catalog: it is read where its source has other content, and the cluster shows what was found.
Bundles of it are compared where somebody asks.
"""
