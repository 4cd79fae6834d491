-- Begins a request with an idempotency key. KEYS[1]: the key. ARGV: fingerprint; lease and abandonment in microseconds; the
-- greatest token that the instance has seen; 1 if replicas are waited for, '' else.
-- Fields: fp; token; lease, its end; over, 1 when the try took over from one that never ended; done and answer, once it is done.
-- A key that has a token only was let go: the token is kept, so that later ones are greater.
-- Answers {'run', token, over}, {'running', microseconds left}, {'replay', answer} or {'mismatch'}.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local lease, abandoned = tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = redis.call('HMGET', KEYS[1], 'fp', 'token', 'lease', 'done')
local over = '0'
if kept[1] then
	if kept[1] ~= ARGV[1] then
		return {'mismatch'}
	elseif kept[4] then
		if ARGV[5] == '1' then -- a write, so that WAIT waits for the one that completed it
			redis.call('HSET', KEYS[1], 'done', '1')
		end
		return {'replay', redis.call('HGET', KEYS[1], 'answer')}
	elseif tonumber(kept[3]) > now then
		return {'running', tonumber(kept[3]) - now}
	end
	over = '1'
end
local token = string.format('%.0f', math.max(now, tonumber(kept[2] or 0) + 1, tonumber(ARGV[4]) + 1))
redis.call('HSET', KEYS[1], 'fp', ARGV[1], 'token', token, 'lease', string.format('%.0f', now + lease), 'over', over)
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil((lease + abandoned) / 1000)))
return {'run', token, over}
