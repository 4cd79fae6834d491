package engine

import (
	"math"
	"math/bits"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

const (
	mostColumns = 300
	fineBefore  = time.Second
	fineLength  = 10 * time.Second
)

// newDetail makes room for what only pictures need.
func (e *Engine) newDetail(r *Record) *Detail {
	column := (r.Duration/mostColumns + finestBin - 1) / finestBin * finestBin
	d := &Detail{HeatBin: column, StateBin: column}
	d.Fine.From = max(r.End-fineBefore, 0)
	slots := int(min(fineLength, r.Duration-d.Fine.From) / time.Duration(peakWidth))
	for range r.Services {
		d.Fine.Services = append(d.Fine.Services, make([]uint16, slots))
	}
	columns := int(r.Duration/column) + 1
	d.Heat = make([][HeatRows]uint32, columns)
	for k := range e.edges {
		d.States = append(d.States, StateStrip{Caller: e.edges[k].record.Caller, Callee: e.edges[k].record.Callee})
	}
	e.tracer.start(e, r)
	return d
}

// fine counts an attempt in its 10 ms.
func (e *Engine) fine(service int) {
	d := e.record.Detail
	if slot := (e.now - e.warm - int64(d.Fine.From)) / peakWidth; slot >= 0 && slot < int64(len(d.Fine.Services[service])) && e.now >= e.warm {
		d.Fine.Services[service][slot]++
	}
}

// heat counts an answered request in the heat map of latencies.
func (e *Engine) heat(took int64) {
	if !e.detail || e.now < e.warm || e.now >= e.end {
		return
	}
	d := e.record.Detail
	if column := (e.now - e.warm) / int64(d.HeatBin); column < int64(len(d.Heat)) {
		d.Heat[column][heatRow(took)]++
	}
}

// heatRow is the row of a latency: half a doubling each, from 1 ms up.
func heatRow(ns int64) int {
	ms := uint64(ns) / 1e6
	if ms == 0 {
		return 0
	}
	doublings := bits.Len64(ms) - 1
	row := 2 * doublings
	if float64(ns) >= float64(uint64(1e6)<<doublings)*math.Sqrt2 {
		row++
	}
	return min(row, HeatRows-1)
}

// sampleGuards notes the state of all guards, once per column.
func (e *Engine) sampleGuards() {
	d := e.record.Detail
	at := time.Duration(e.now - e.warm)
	if at < 0 || at > e.record.Duration || at%d.StateBin != 0 {
		return
	}
	for k := range e.edges {
		edge := &e.edges[k]
		caller := &e.nodes[edge.caller]
		var open, half, tokens, waiting float32
		for i := range caller.count {
			state := e.insts[caller.first+i].guards[edge.slot].StateAt(time.Duration(e.now))
			switch state.Breaker.State {
			case breaker.Open:
				open++
			case breaker.HalfOpen, breaker.RampUp:
				half++
			}
			tokens += float32(state.Budget)
			waiting += float32(state.Bulkhead.Queued)
		}
		n := float32(caller.count)
		if !edge.policy.RetryBudget.Enabled() {
			tokens = -n
		}
		s := &d.States[k]
		s.Open, s.HalfOpen = append(s.Open, open/n), append(s.HalfOpen, half/n)
		s.Budget, s.Bulkhead = append(s.Budget, tokens/n), append(s.Bulkhead, waiting/n)
	}
}

// closeDetail chooses the request to show.
func (e *Engine) closeDetail() { e.record.Detail.Sample = e.tracer.best(e) }
