"""A driver of its own process: copies a topic, and prints what it read back and by whom."""

import sys

import spark_connector


def main(master: str, bootstrap: str, topic: str) -> None:
    spark = spark_connector.session(
        master=master,
        spark_ui_enabled=False,
        spark_driver_host="127.0.0.1",
        spark_executor_memory="512m",
        spark_cores_max=2,
    )
    servers = {"kafka.bootstrap.servers": bootstrap}
    frame = spark.read.format("kraftlog").options(**servers, subscribe=topic).load()
    copy = frame.select("key", "value").write.format("kraftlog").mode("append")
    copy.options(**servers, topic=f"{topic}-copy").save()
    back = spark.read.format("kraftlog").options(**servers, subscribe=f"{topic}-copy").load()
    total = back.selectExpr("count(*)", "sum(cast(cast(value as string) as long))").first()
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    sys.stdout.write(f"{executors} {total}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
