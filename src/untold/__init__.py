"""Private convex learning that asks for ε and nothing else."""
