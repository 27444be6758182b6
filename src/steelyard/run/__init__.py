"""Asking engines, keeping what they said, and judging it."""
