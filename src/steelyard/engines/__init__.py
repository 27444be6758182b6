"""Adapters to whatever answers requests; each file knows one engine and nothing else."""
