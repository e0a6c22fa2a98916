"""Spark looks for modules of this name, and finds format("kraftlog") without registering it."""

from spark_connector.source import KraftlogSource

DefaultSource = KraftlogSource
