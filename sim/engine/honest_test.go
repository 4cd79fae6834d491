package engine_test

import "testing"

func TestFailuresBelongToTheTimeOfAsking(t *testing.T) {
	for timeout, after := range map[string]float64{"": 0, ", attemptTimeout: 25s": 0} {
		r := run(t, world(plain+timeout, "duration: 60s", "clients: {f: {rate: 100, calls: [db]}}",
			"services: {db: {workers: 100, serviceTime: 100ms}}",
			"faults: [{outage: db, mode: blackhole, at: 5s, for: 20s}]"))
		within(t, "failures during"+timeout, value(t, r, "failures(during) < 1%"), 0.99, 1)
		within(t, "failures after"+timeout, value(t, r, "failures(after) < 1%"), 0, after)
	}
}

func TestWorkersThatHangAreBusy(t *testing.T) {
	r := run(t, world(plain, "duration: 60s", "clients: {f: {rate: 100, calls: [gw]}}",
		"services: {gw: {workers: 50, serviceTime: 1ms, calls: [db]}, db: {workers: 100, serviceTime: 10ms}}",
		"faults: [{outage: db, at: 20s, for: 20s}]"))
	within(t, "utilization during", value(t, r, "utilization(gw, during) < 10%"), 0.95, 1)
	within(t, "utilization after", value(t, r, "utilization(gw, after) < 10%"), 0, 0.1)
}

func TestUsersWhoAllWaitForEverHaveCollapsed(t *testing.T) {
	r := run(t, world(plain, "duration: 120s", "clients: {f: {users: 100, think: exponential 1s, calls: [db]}}",
		"services: {db: {workers: 100, serviceTime: 10ms}}",
		"faults: [{outage: db, mode: blackhole, at: 60s, for: 20s}]"))
	equal(t, "collapse", value(t, r, "collapse < 10%"), 1)
}

func TestADeadServiceIsVisibleToUsers(t *testing.T) {
	r := run(t, world(plain, "duration: 60s", "clients: {f: {rate: 100, patience: 50ms, calls: [db]}}",
		"services: {db: {workers: 1, serviceTime: 100ms}}",
		"faults: [{outage: db, at: 20s, for: 5s}]"))
	within(t, "userVisible", value(t, r, "userVisible < 1s"), 59, 60)
}
