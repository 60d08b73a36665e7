"""Whether decisions drawn from recorded votes hold: populations with a known truth, and what a ranking says of them."""
