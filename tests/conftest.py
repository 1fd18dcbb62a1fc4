"""What the tests of all rooms share."""

pytest_plugins = ["penstock.testing.fixtures", "servers.kafka", "servers.s3"]
