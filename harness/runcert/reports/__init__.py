"""What people and programs read of a run: the terminal, Markdown, JUnit, JSON."""
