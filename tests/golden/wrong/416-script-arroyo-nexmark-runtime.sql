CREATE TABLE a WITH (connector = 'nexmark', rate = 10,
  runtime = 5);
SELECT bid FROM a;
