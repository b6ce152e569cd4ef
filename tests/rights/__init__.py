"""Our own rights (S31): roles, accounts and policies as shipped, and what a stolen token of each process is good for."""
