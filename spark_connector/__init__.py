"""Spark reads and writes topics: `format("kraftlog")` with the columns and options of "kafka".

from spark_connector import session

spark = session(master="local[2]")
"""

# At once and not on demand: the module of the same name would else take the function's place.
from spark_connector.session import session

__all__ = ["session"]
