CREATE TABLE a (id BIGINT)
  WITH (connector = 'filesystem', path = 'gs://b/k', format = 'json',
  'storage.google_service_account_key' = '/key.json');
SELECT id FROM a;
