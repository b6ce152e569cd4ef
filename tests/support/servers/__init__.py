"""Servers that tests start on this machine, in processes of their own or in threads, and stop again."""
