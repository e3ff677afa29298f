"""Consumers of noisy subgradients, one file each: pure functions of a state, told nothing about the noise."""
