"""One page about one run: what was broken, what clients saw, and the verdict, in words first."""

from chaos.report.page import write_report

__all__ = ["write_report"]
