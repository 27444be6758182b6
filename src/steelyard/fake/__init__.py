"""A decision server that is not one: every wire, every quirk, on this machine only."""
