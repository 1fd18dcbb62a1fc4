SELECT gcd(a, b), lcm(a, b), iszero(a), trunc(a), trunc(a, 2), trunc(day, 'MM')
