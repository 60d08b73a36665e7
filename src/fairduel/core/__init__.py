"""The mathematics: links, likelihood, information, radii, selection rules, designs."""
