"""One page about one run: what was broken, what clients saw, and the verdict, in words first."""

from chaos.report.page import REPORT, write_report

__all__ = ["REPORT", "write_report"]
