"""The Django app: who asked, who agreed, what happened."""
