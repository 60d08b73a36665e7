"""Rewards learned from preferences: answers are new in every pair, and only their features link one vote to another."""
