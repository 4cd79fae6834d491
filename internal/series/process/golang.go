package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/abate-go/abate/internal/series"
)

// Go is a collector of what the runtime knows: goroutines, threads, memory, collections.
type Go struct{}

var (
	goroutinesDesc = series.NewDesc("go_goroutines", "Goroutines that there are now.")
	threadsDesc    = series.NewDesc("go_threads", "Threads of the operating system that the runtime has created.")
	pausesDesc     = series.NewDesc("go_gc_duration_seconds",
		"How long the world was stopped by a garbage collection: of the latest ones the quantiles, of all the sum.")
	lastDesc = series.NewDesc("go_memstats_last_gc_time_seconds",
		"When the last garbage collection ended, as a Unix time.")
	infoDesc = series.NewDesc("go_info", "Always 1: the label is the version of Go that the program was built with.",
		"version")
)

// memory is one number of the runtime, or several that are added up.
type memory struct {
	desc *series.Desc
	kind series.Kind
	of   []string // by their names in runtime/metrics
}

func bytes(name, help string, of ...string) memory {
	return memory{series.NewDesc("go_memstats_"+name+"_bytes", help), series.GaugeKind, of}
}

func total(name, help string, of ...string) memory {
	return memory{series.NewDesc("go_memstats_"+name+"_total", help), series.CounterKind, of}
}

func setting(name, unit, help, of string) memory {
	d := series.NewDesc("go_"+name+"_"+unit, help)
	d.Unit = unit
	return memory{d, series.GaugeKind, []string{of}}
}

const (
	objects, unused  = "/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes"
	released, free   = "/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes"
	stacks, osStacks = "/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes"
	spans, spansFree = "/memory/classes/metadata/mspan/inuse:bytes", "/memory/classes/metadata/mspan/free:bytes"
	caches           = "/memory/classes/metadata/mcache/inuse:bytes"
	cachesFree       = "/memory/classes/metadata/mcache/free:bytes"
	tiny             = "/gc/heap/tiny/allocs:objects"
)

// memories are all of them. Those called memstats are what runtime.MemStats has, read without stopping the world.
var memories = []memory{
	setting("gc_gogc", "percent", "GOGC: how much the heap may grow between two collections.", "/gc/gogc:percent"),
	setting("gc_gomemlimit", "bytes", "GOMEMLIMIT: the memory that the collector keeps the process below, if it can.",
		"/gc/gomemlimit:bytes"),
	setting("sched_gomaxprocs", "threads", "GOMAXPROCS: how many threads run Go code at once.",
		"/sched/gomaxprocs:threads"),
	bytes("alloc", "Bytes of objects on the heap now.", objects),
	total("alloc_bytes", "Bytes of all objects ever put on the heap.", "/gc/heap/allocs:bytes"),
	bytes("sys", "Bytes got from the operating system.", "/memory/classes/total:bytes"),
	total("mallocs", "Objects ever put on the heap.", "/gc/heap/allocs:objects", tiny),
	total("frees", "Objects ever taken off the heap.", "/gc/heap/frees:objects", tiny),
	bytes("heap_alloc", "The same as go_memstats_alloc_bytes.", objects),
	bytes("heap_sys", "Bytes of the heap got from the operating system, those given back included.",
		objects, unused, released, free),
	bytes("heap_idle", "Bytes of the heap in which nothing is, those given back included.", released, free),
	bytes("heap_inuse", "Bytes of the heap in spans with at least one object.", objects, unused),
	bytes("heap_released", "Bytes of the heap given back to the operating system.", released),
	{series.NewDesc("go_memstats_heap_objects", "Objects on the heap now."), series.GaugeKind,
		[]string{"/gc/heap/objects:objects"}},
	bytes("stack_inuse", "Bytes of the stacks of goroutines.", stacks),
	bytes("stack_sys", "The same, with the stacks of threads.", stacks, osStacks),
	bytes("mspan_inuse", "Bytes of the runtime's records of spans, in use.", spans),
	bytes("mspan_sys", "The same, with those kept ready.", spans, spansFree),
	bytes("mcache_inuse", "Bytes of the runtime's caches of spans, in use.", caches),
	bytes("mcache_sys", "The same, with those kept ready.", caches, cachesFree),
	bytes("buck_hash_sys", "Bytes of the tables of profiles.", "/memory/classes/profiling/buckets:bytes"),
	bytes("gc_sys", "Bytes of what the collector remembers.", "/memory/classes/metadata/other:bytes"),
	bytes("other_sys", "Bytes of all else that the runtime has.", "/memory/classes/other:bytes"),
	bytes("next_gc", "Bytes of the heap at which the next collection is to end.", "/gc/heap/goal:bytes"),
}

// Describe sends the descriptions.
func (Go) Describe(send func(*series.Desc)) {
	for _, d := range []*series.Desc{goroutinesDesc, threadsDesc, pausesDesc, lastDesc, infoDesc} {
		send(d)
	}
	for _, m := range memories {
		send(m.desc)
	}
}

// Collect reads the runtime.
func (Go) Collect(send func(series.Sample)) {
	send(series.Gauge(goroutinesDesc, float64(runtime.NumGoroutine())))
	threads, _ := runtime.ThreadCreateProfile(nil)
	send(series.Gauge(threadsDesc, float64(threads)))
	send(series.Gauge(infoDesc, 1, runtime.Version()))
	stats := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&stats)
	pauses := series.Sample{Desc: pausesDesc, Kind: series.SummaryKind, Distribution: &series.Distribution{
		Count: uint64(stats.NumGC), Sum: stats.PauseTotal.Seconds()}}
	for i, pause := range stats.PauseQuantiles {
		pauses.Distribution.Quantiles = append(pauses.Distribution.Quantiles,
			series.Quantile{Share: float64(i) / 4, Value: pause.Seconds()})
	}
	send(pauses)
	send(series.Gauge(lastDesc, float64(stats.LastGC.UnixNano())/1e9))
	var samples []metrics.Sample
	for _, m := range memories {
		for _, name := range m.of {
			samples = append(samples, metrics.Sample{Name: name})
		}
	}
	metrics.Read(samples)
	for _, m := range memories {
		sum := uint64(0)
		for _, s := range samples[:len(m.of)] {
			if s.Value.Kind() == metrics.KindUint64 { // one that a later Go does not have counts as nothing
				sum += s.Value.Uint64()
			}
		}
		samples = samples[len(m.of):]
		send(series.Sample{Desc: m.desc, Kind: m.kind, Value: float64(sum)})
	}
}
