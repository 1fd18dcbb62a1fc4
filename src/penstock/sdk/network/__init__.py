"""Connection options: addresses, TLS, authentication, start positions, retry, client pools."""
