-- The retry budget of a fleet: two counters that only grow, whose difference is the balance, and what the first stood at when
-- each of the last ten tenths of the window began. The balance is at most what never expires and what was earned in the window.
-- KEYS[1]: the budget. ARGV: earned, brought back, wanted, the reserve to begin with, what never expires, the window in microseconds.
-- Answers what was granted.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local earned, back, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local reserve, floor, tenth = tonumber(ARGV[4]), tonumber(ARGV[5]), math.max(1, math.floor(tonumber(ARGV[6]) / 10))
local slot = math.floor(now / tenth)

local kept = redis.call('HMGET', KEYS[1], 'in', 'out', 'slot', 'marks', 'tenth')
local got, gone = tonumber(kept[1] or reserve), tonumber(kept[2] or 0)
local marks = {}
for mark in string.gmatch(kept[4] or '', '%S+') do
	marks[#marks + 1] = tonumber(mark)
end
local steps = slot - tonumber(kept[3] or 0)
if #marks ~= 10 or tonumber(kept[5]) ~= tenth or steps < -1 then
	marks, steps = {}, 10 -- a new one, of another window, or from before the clock went back: what it holds above the floor expires now
end
for i = 1, 10 do
	marks[i] = marks[i + math.max(0, math.min(steps, 10))] or got
end

got = got + earned
gone = math.max(gone - back, marks[1] - floor)
local granted = math.max(0, math.min(want, got - gone))
gone = gone + granted

local base = marks[1] -- only differences count, and small numbers stay exact
local function text(n) return string.format('%.0f', n) end
for i = 1, 10 do
	marks[i] = text(marks[i] - base)
end
redis.call('HSET', KEYS[1], 'in', text(got - base), 'out', text(gone - base), 'slot', text(math.max(slot, slot - steps)), 'marks', table.concat(marks, ' '), 'tenth', text(tenth))
redis.call('PEXPIRE', KEYS[1], 3600000)
return granted
