"""Statistics on plain arrays: numpy and the standard library only."""
