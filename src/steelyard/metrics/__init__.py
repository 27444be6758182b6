"""Numbers from the decisions table. Knows no file format."""
