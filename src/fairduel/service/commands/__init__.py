"""What operators and voters do: commands decide which events follow."""
