"""Stubs made from proto/ by `make proto`. Nothing here is written by hand."""
