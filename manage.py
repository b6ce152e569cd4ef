#!/usr/bin/env python
"""`pratique-manage` of this checkout."""

from approvals.project.manage import main

if __name__ == "__main__":
    main()
