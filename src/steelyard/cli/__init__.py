"""Commands: flags to calls, findings to text, exit codes."""
