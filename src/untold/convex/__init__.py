"""Convex losses, the sets their weights live in, and the clipping that bounds one person's part."""
