-- One token bucket. Tokens are counted in millionths, time in microseconds of this server.
-- KEYS[1]: the bucket. ARGV: what it holds at most; tokens per microsecond; what is needed at least, wanted at most, and brought back;
-- what was spent without it and is paid now; what it can hold, as far as the asker knows, if it is not here; how far below 0 debts bring it.
-- Answers: what was taken, which is 0 or at least what was needed; what is left, below 0 while more was spent without it than it had.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local burst, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local need, want, back = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local debt = tonumber(ARGV[6])

local tokens, at = math.min(burst, tonumber(ARGV[7])), now
local kept = redis.call('GET', KEYS[1])
if kept then
	local gap = string.find(kept, ' ', 1, true) or 0
	tokens = tonumber(string.sub(kept, 1, gap - 1)) or burst
	at = tonumber(string.sub(kept, gap + 1)) or now
end
tokens = math.min(burst, tokens + math.max(0, now - at) * rate + back)
tokens = math.max(tokens - debt, tonumber(ARGV[8])) -- a debt that is paid twice, because an answer was lost, costs no more

local taken = 0
if tokens >= need and tokens > 0 then
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
