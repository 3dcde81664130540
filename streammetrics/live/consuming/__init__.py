"""Consumers of queues: Redis streams, NATS JetStream and Kafka topics, each event counted once."""
