CREATE TABLE a WITH (connector = 'nexmark', event_rate = 10,
  runtime = 5);
SELECT bid FROM a;
