"""Parts of connectors to AWS services: options, clients, errors, and queues of SQS."""
