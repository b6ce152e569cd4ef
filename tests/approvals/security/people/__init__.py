"""Attacks on who somebody is: sign-in, names, requesters, votes and rights."""
