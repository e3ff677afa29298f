"""Randomisers of the local model, one file each."""
