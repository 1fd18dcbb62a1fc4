SELECT p.name, p.city, p.state, a.id
FROM auction AS a, person AS p
WHERE a.seller = p.id AND a.category = 10
  AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')
