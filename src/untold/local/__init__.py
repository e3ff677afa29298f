"""The local model in one process: a crowd of rows, each of which sends one report to a learner."""
