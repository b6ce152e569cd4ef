"""Whether objects are what their specs ask for: kstatus, CEL checks, the reasons, and waiting for it."""
