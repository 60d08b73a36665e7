"""How much of the true order survives false votes, with our ranking and with rivals."""
