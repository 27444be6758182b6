"""Views of a report. They decide nothing."""
