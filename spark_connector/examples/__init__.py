"""Pipelines to copy and keep. Each is one command on a cluster of `kraftctl up`, makes its own
input, and draws what comes out.

python -m spark_connector.examples.clickstream   clicks of visitors -> sessions in Parquet files
python -m spark_connector.examples.enrich        orders and products, two topics -> a third
python -m spark_connector.examples.alerts        bank transactions over a limit -> alerts
"""
