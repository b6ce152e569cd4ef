"""What our own processes may do in a cluster: what each needs, what is missing, and the roles that give it (S31)."""
