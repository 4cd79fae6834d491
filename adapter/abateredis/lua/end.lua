-- Renews, completes, fails or restores a try. KEYS[1]: the key, with the fields of begin.lua. ARGV: 'renew', 'complete', 'fail' or
-- 'restore'; the token; microseconds of the lease or the retention; microseconds of the abandonment; the answer to keep; the
-- fingerprint and 1 if the try had taken over, which only 'restore' has.
-- Answers 1, or 0 when the token does not hold the key any more.
local kept = redis.call('HMGET', KEYS[1], 'token', 'done', 'over', 'fp')
local what, token = ARGV[1], ARGV[2]
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local long, abandoned = tonumber(ARGV[3]), tonumber(ARGV[4])
local keep = long
if what == 'restore' and not kept[4] then
	if kept[1] and tonumber(kept[1]) >= tonumber(token) then -- a try that failed, ours or a later one
		return 0
	end
	redis.call('HSET', KEYS[1], 'fp', ARGV[6], 'token', token, 'lease', string.format('%.0f', now + long), 'over', ARGV[7])
	redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil((long + abandoned) / 1000)))
	return 1
end
if not kept[4] or kept[1] ~= token then
	return 0
end
if kept[2] then
	if what ~= 'complete' then
		return 0
	end
	-- Told again: what is stored stays, but for an answer that was not there. It is written in any case: WAIT waits for the last write.
	local answer = redis.call('HGET', KEYS[1], 'answer')
	if string.byte(answer, 1) == 2 and string.byte(ARGV[5], 1) ~= 2 then
		redis.call('HSET', KEYS[1], 'answer', ARGV[5])
		redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(keep / 1000)))
	else
		redis.call('HSET', KEYS[1], 'done', '1')
	end
	return 1
end
if what == 'renew' or what == 'restore' then
	redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', now + long))
	keep = long + abandoned
elseif what == 'complete' then
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
