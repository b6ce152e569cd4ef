"""The form of Kubernetes quantities such as `10Gi`, in one place for all who read them."""

from __future__ import annotations

import re

# As many digits as anybody writes: what is made of more takes quadratic time, and Python refuses to read it.
QUANTITY_FORM = re.compile(
    r"([+-]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400}))([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?"
)
