"""Wire formats: what files and replies look like. Knows no metric."""
