"""Who may decide what, what is waited for, and what an approval stands for."""
