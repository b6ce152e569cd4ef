"""Objects of Kubernetes that say how requests are decided: what each kind holds, selects and asks. PURE.

The object in the cluster is the truth; `ledger.deciding` keeps a copy. A kind is one class in one file, and a
line in `table.KINDS`: the watch, the pages, REST and the status in the cluster go over that table.
"""
