SELECT to_char(at, '%Y-%m-%dT%H:%M:%S%.3f'), date_format(at, '%A %-d. %B, %I %p'), to_char(at, '%d|%j|x')
SELECT to_char(at, 'yyyy'), date_format(at, 'yyyy-MM-dd'), to_char(n, '999'), to_timestamp(a, 'yyyy')
SELECT to_timestamp(a, '%d/%m/%Y'), to_timestamp(a, '%F %T', '%d.%m.%y'), to_date(a, '%d/%m/%Y')
SELECT to_unixtime(a, '%F %T'), to_timestamp_seconds(a, '%F %T'), to_timestamp_millis(a, '%F %T%.3f')
