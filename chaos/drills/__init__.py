"""Failure drills: each breaks a real cluster in one way and judges what its clients saw."""
