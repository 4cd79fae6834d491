package engine

import (
	"math"
	"math/bits"
	"time"
)

const (
	mostColumns = 300
	fineBefore  = time.Second
	fineLength  = 10 * time.Second
)

// newDetail makes room for what only pictures need.
func newDetail(r *Record) *Detail {
	column := (r.Duration/mostColumns + finestBin - 1) / finestBin * finestBin
	d := &Detail{HeatBin: column, StateBin: column}
	d.Fine.From = max(r.End-fineBefore, 0)
	slots := int(min(fineLength, r.Duration-d.Fine.From) / time.Duration(peakWidth))
	for range r.Services {
		d.Fine.Services = append(d.Fine.Services, make([]uint16, slots))
	}
	columns := int(r.Duration/column) + 1
	d.Heat = make([][HeatRows]uint32, columns)
	for k := range r.Edges {
		d.States = append(d.States, StateStrip{Caller: r.Edges[k].Caller, Callee: r.Edges[k].Callee})
	}
	return d
}

// fine counts an attempt in its 10 ms.
func (r *recorder) fine(service int32) {
	counts, now := r.record.Detail.Fine.Services[r.world.nodes[service].index], r.world.now-r.world.warm
	slot := (now - int64(r.record.Detail.Fine.From)) / peakWidth
	if slot >= 0 && slot < int64(len(counts)) && now >= 0 {
		counts[slot]++
	}
}

// heat counts an answered request in the heat map of latencies.
func (r *recorder) heat(took int64) {
	if !r.detail || r.world.now < r.world.warm || r.world.now >= r.world.end {
		return
	}
	d := r.record.Detail
	if column := (r.world.now - r.world.warm) / int64(d.HeatBin); column < int64(len(d.Heat)) {
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

// column reports whether a column of the states of guards is due.
func (r *recorder) column() bool {
	at := r.since(r.world.now)
	return r.detail && at >= 0 && at <= r.record.Duration && at%r.record.Detail.StateBin == 0
}
