"""Compiled loops over rows and reports: each the fast twin of something readable, tested equal to it."""
