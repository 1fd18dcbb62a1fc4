SELECT id,
  price
FROM orders;
