-- Renews, completes or fails a try. KEYS[1]: the key, with the fields of begin.lua. ARGV: 'renew', 'complete' or 'fail'; the
-- token; microseconds of the lease or the retention; microseconds of the abandonment; the answer to keep.
-- Answers 1, or 0 when the token does not hold the key any more.
local kept = redis.call('HMGET', KEYS[1], 'token', 'done', 'over', 'fp')
if not kept[4] or kept[1] ~= ARGV[2] or kept[2] then
	return 0
end
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local long, abandoned = tonumber(ARGV[3]), tonumber(ARGV[4])
local keep = long
if ARGV[1] == 'renew' then
	redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', now + long))
	keep = long + abandoned
elseif ARGV[1] == 'complete' then
	redis.call('HSET', KEYS[1], 'done', '1', 'answer', ARGV[5])
elseif kept[3] == '1' then -- the next one takes over too
	redis.call('HSET', KEYS[1], 'lease', '0', 'token', string.format('%.0f', tonumber(kept[1]) + 1))
	keep = abandoned
else
	redis.call('HDEL', KEYS[1], 'fp', 'lease', 'over')
	keep = 600000000
end
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(keep / 1000)))
return 1
