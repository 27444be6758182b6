"""Frozen records shared by every floor above; no input or output here."""
