"""Ratios to the peer or to a bound, measured side by side in one run; never a timed test."""
