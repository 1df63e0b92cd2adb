"""Rewrites of a plan before it is split into a program: each makes an equal plan that can be maintained better."""
