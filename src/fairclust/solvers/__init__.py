"""Solvers of the assignment step on the group-by-cluster table, shared by the methods."""
