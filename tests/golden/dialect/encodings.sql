SELECT md5(a), sha256(a), encode(sha224(a), 'hex'), decode(a, 'base64'), to_hex(n), digest(a, 'md5')
SELECT encode(a, 'UTF-8'), encode(a, 'base64'), sha2(a, 256)
SELECT encode(a, 'base64pad'), decode(a, 'base64pad')
