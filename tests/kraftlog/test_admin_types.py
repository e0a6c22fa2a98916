from kraftlog.admin_types import ConfigResource, NewTopic


def test_resources_have_names() -> None:
    assert ConfigResource.topic("t") == ConfigResource("topic", "t")
    assert ConfigResource.broker(3) == ConfigResource("broker", "3")
    assert str(ConfigResource.topic("t")) == "topic t"
    assert str(ConfigResource.broker()) == "all brokers"


def test_a_new_topic_takes_the_defaults_of_the_cluster() -> None:
    topic = NewTopic("t")
    assert (topic.partitions, topic.replication_factor, topic.configs) == (None, None, {})
