package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// inZones are callers and replicas in three zones, with what a call costs between two.
func inZones(service, fault string) []string {
	return []string{
		`clients: {f: {rate: 600, instances: 6, zones: ["a", "b", "c"], calls: [{to: s, acrossZones: 20ms}]}}`,
		`services: {s: {replicas: 9, balancing: least-request, zones: ["a", "b", "c"], ` + service + "}}",
		"duration: 120s", "faults: [" + fault + "]",
	}
}

func mean(r *engine.Record, w engine.Window) time.Duration {
	return time.Duration(r.Fleets[0].Latency[w].Mean() * float64(time.Second))
}

// Two thirds of the calls go to another zone, for 40 ms there and back, until the own zone has shown that it does no
// worse.
func TestCallersComeToPreferTheirOwnZone(t *testing.T) {
	lines := inZones("workers: 10, serviceTime: 5ms", "{at: 100s, for: 1s, slowdown: s, factor: 1.01}")
	mean := func(policy string) time.Duration { return mean(run(t, world(policy, lines...)), engine.After) }
	if got := mean(plain); got < 5*ms || got > 8*ms {
		t.Errorf("answers take %v, want about the 5ms of the own zone", got)
	}
	if got := mean(plain + ", ignoreZones: true"); got < 25*ms || got > 34*ms {
		t.Errorf("answers take %v without a preference, want 5ms and almost two thirds of 40ms", got)
	}
}

func TestAFaultOfAZoneHitsThatZone(t *testing.T) {
	lines := inZones("serviceTime: 1ms", `{at: 10s, for: 50s, outage: s, mode: fail, zone: "b"}`)
	r := run(t, world(plain+", outlierDetection: {disabled: true}, ignoreZones: true", lines...))
	within(t, "failed requests", float64(total(r.Fleets[0].Failed)), 600*50*0.33, 600*50*0.6) // who fails is never busy
	equal(t, "failed requests before", between(r, r.Fleets[0].Failed, 0, 10*time.Second), 0)
}

// The own zone is gone: each caller ejects its replicas one by one and goes elsewhere.
func TestCallersLeaveAZoneThatFails(t *testing.T) {
	lines := inZones("serviceTime: 1ms", `{at: 60s, for: 50s, outage: s, mode: refuse, zone: "b"}`)
	r := run(t, world(plain, lines...))
	if n := total(r.Fleets[0].Failed); n > 600*3 {
		t.Errorf("%d requests failed, of 10,000 that would have gone there", n)
	}
}

const checked = plain + ", outlierDetection: {disabled: true}, healthCheck: {kind: http, interval: 1s, timeout: 500ms}"

func TestHealthChecksTakeOutWhatCallsDoNot(t *testing.T) {
	for _, mode := range []string{"fail", "refuse", "blackhole", "hang"} {
		fault := fmt.Sprintf("{at: 20s, for: 60s, outage: s, mode: %s, share: 10%%}", mode)
		lines := inZones("serviceTime: 1ms, workers: 20", fault)
		failed := func(policy string) int64 { return total(run(t, world(policy, lines...)).Fleets[0].Failed) }
		with := failed(checked + ", attemptTimeout: 1s")
		without := failed(plain + ", outlierDetection: {disabled: true}, attemptTimeout: 1s")
		if with*3 > without || with == 0 {
			t.Errorf("%s: %d requests fail with health checks, %d without", mode, with, without)
		}
	}
}

func TestChecksFollowReplicasThatComeAndGo(t *testing.T) {
	lines := []string{"clients: {f: {rate: 400, instances: 3, calls: [s]}}",
		"services: {s: {replicas: 3, balancing: least-request, workers: 4, serviceTime: 20ms, start: {takes: 2s}, " +
			"autoscale: {target: 50%, max: 12, every: 5s}}}",
		"duration: 120s", "faults: [{at: 90s, for: 5s, restart: s, share: 30%}]"}
	s := read(t, world(checked, lines...))
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(1, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := e.Unsettled(); n != 0 {
		t.Errorf("%d attempts are unsettled", n)
	}
	f := &r.Fleets[0]
	if answered := total(f.Offered) - total(f.Failed) - total(f.Refused); answered < 40_000 {
		t.Errorf("%d of 48,000 requests were answered", answered)
	}
}
