-- Who is alive. KEYS[1]: a sorted set. ARGV: the instance; how many milliseconds one counts without a sign; 1 to come, 0 to leave.
-- Answers how many there are.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local keep = tonumber(ARGV[2])
if ARGV[3] == '1' then
	redis.call('ZADD', KEYS[1], now, ARGV[1])
else
	redis.call('ZREM', KEYS[1], ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - keep))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + keep), '+inf') -- from before a clock went back
redis.call('PEXPIRE', KEYS[1], keep * 10)
return redis.call('ZCARD', KEYS[1])
