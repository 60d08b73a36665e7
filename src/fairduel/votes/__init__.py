"""Recorded votes: read them, rank them, see how far to trust them."""

from fairduel.votes.votes import Votes

__all__ = ["Votes"]
