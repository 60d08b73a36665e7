"""What a study is: its settings, its items and its agent."""
