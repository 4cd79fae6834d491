-- One token bucket. Tokens are counted in millionths, time in microseconds of this server.
-- KEYS[1]: the bucket. ARGV: what it holds at most; tokens per microsecond; what is needed at least, wanted at most, and brought back.
-- Answers: what was taken, which is 0 or at least what was needed; what is left.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local burst, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local need, want, back = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local tokens, at = burst, now
local kept = redis.call('GET', KEYS[1])
if kept then
	local gap = string.find(kept, ' ', 1, true) or 0
	tokens = tonumber(string.sub(kept, 1, gap - 1)) or burst
	at = tonumber(string.sub(kept, gap + 1)) or now
end
tokens = math.min(burst, tokens + math.max(0, now - at) * rate + back)

local taken = 0
if tokens >= need then
	taken = math.min(want, math.floor(tokens))
	tokens = tokens - taken
end

-- What came in is kept, also when nothing was taken. The key goes when the bucket is full again, which is what no key means.
if tokens >= burst then
	redis.call('DEL', KEYS[1])
else
	local full = math.ceil((burst - tokens) / rate / 1000) + 1
	redis.call('SET', KEYS[1], string.format('%.17g %.0f', tokens, now), 'PX', string.format('%.0f', math.min(full, 1e13)))
end
return {taken, math.floor(tokens)}
