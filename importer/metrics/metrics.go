package metrics

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// Recognise reports whether d is an answer of Prometheus to an instant query.
func Recognise(d source.Document) bool {
	head := bytes.TrimSpace(d.Data[:min(len(d.Data), 2048)])
	return len(head) > 0 && head[0] == '{' && bytes.Contains(head, []byte(`"resultType"`)) &&
		bytes.Contains(head, []byte(`"vector"`))
}

type answer struct {
	Data struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Value  [2]any            `json:"value"`
		} `json:"result"`
	} `json:"data"`
}

type edge struct{ from, to string }

type reading struct {
	form   topology.Form
	at     topology.Position
	rates  map[edge]float64 // as the caller's side counts them
	served map[edge]float64 // as the callee's side does
	edges  []edge
	p50    map[string]float64
	p99    map[string]float64
}

// Read returns the services and calls that the answers show together.
func Read(docs []source.Document, _ source.Assume) topology.Form {
	r := &reading{rates: map[edge]float64{}, served: map[edge]float64{}, p50: map[string]float64{},
		p99: map[string]float64{}}
	for _, d := range docs {
		r.at = cmp.Or(r.at, d.At(1, 0))
		var a answer
		if err := json.Unmarshal(d.Data, &a); err != nil {
			r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F702", At: d.At(1, 0), Subject: "metrics",
				Text: "this answer of Prometheus could not be read: " + err.Error(), Fix: "save it again"})
			continue
		}
		for _, sample := range a.Data.Result {
			text, _ := sample.Value[1].(string)
			if v, err := strconv.ParseFloat(text, 64); err == nil && v > 0 && !math.IsInf(v, 0) {
				r.sample(sample.Metric, v)
			}
		}
	}
	r.write()
	return r.form
}

func (r *reading) sample(labels map[string]string, v float64) {
	from, to := ends(labels)
	if to == "" {
		return
	}
	switch labels[mark] {
	case "p50":
		r.p50[to] = max(r.p50[to], v)
	case "p99":
		r.p99[to] = max(r.p99[to], v)
	case "", "rate":
		e := edge{from, to}
		if !slices.Contains(r.edges, e) {
			r.edges = append(r.edges, e)
		}
		if labels["reporter"] == "destination" {
			r.served[e] += v
		} else {
			r.rates[e] += v
		}
	}
}

// ends returns the caller and the callee that labels name.
func ends(labels map[string]string) (from, to string) {
	switch {
	case labels["server"] != "":
		return outside(labels["client"]), labels["server"]
	case labels["destination_service_name"] != "":
		return outside(qualified(labels["source_workload"], labels["source_workload_namespace"])),
			qualified(labels["destination_service_name"], labels["destination_service_namespace"])
	case labels["dst_service"] != "":
		return qualified(labels["deployment"], labels["namespace"]), qualified(labels["dst_service"], labels["dst_namespace"])
	}
	return "", ""
}

// outside turns the names that meshes and collectors have for nobody into none.
func outside(name string) string {
	switch name {
	case "user", "unknown", "unknown.unknown", "virtual_node":
		return ""
	}
	return name
}

func qualified(name, namespace string) string {
	if name == "" || namespace == "" || namespace == "unknown" {
		return name
	}
	return name + "." + namespace
}

func (r *reading) write() {
	into := map[string]float64{}
	for _, e := range r.edges {
		into[e.to] += r.rate(e)
	}
	var names []string
	for _, e := range r.edges {
		for _, n := range []string{e.from, e.to} {
			if n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	for _, n := range names {
		r.form.Services = append(r.form.Services, topology.Service{Name: n, At: r.at, Rate: r.fromOutside(n, into[n]),
			OwnTime: r.seconds(r.p50[n]), OwnTime99: r.seconds(r.p99[n])})
	}
	for _, e := range r.edges {
		if e.from == "" {
			continue
		}
		c := topology.Call{From: e.from, To: e.to, At: r.at}
		if in := into[e.from]; in > 0 {
			c.PerRequest = topology.Write(r.rate(e)/in, r.at)
		}
		r.form.Calls = append(r.form.Calls, c)
		r.repeated(e)
	}
}

// rate is the rate of first tries of an edge: what the caller's side counts where both sides do, because a sidecar
// counts a call once there and each try on the other side.
func (r *reading) rate(e edge) float64 {
	if r.rates[e] > 0 {
		return r.rates[e]
	}
	return r.served[e]
}

// fromOutside is the rate of requests that no service of ours sends: all of a service that nobody calls are its own.
func (r *reading) fromOutside(name string, in float64) topology.Value[float64] {
	rate := r.rate(edge{"", name})
	if in == 0 { // it calls, and nobody is seen to call it: as often as its most frequent call
		for _, e := range r.edges {
			if e.from == name {
				rate = max(rate, r.rate(e))
			}
		}
	}
	if rate == 0 {
		return topology.Value[float64]{}
	}
	return topology.Write(math.Round(rate*1000)/1000, r.at)
}

// seconds is a latency; the time of a service's own calls is in it, as metrics do not tell them apart.
func (r *reading) seconds(s float64) topology.Value[time.Duration] {
	if s == 0 {
		return topology.Value[time.Duration]{}
	}
	return topology.Write(time.Duration(s*float64(time.Second)).Round(time.Microsecond), r.at)
}

// repeated is the amplification that a mesh shows: more requests arrive than were sent.
func (r *reading) repeated(e edge) {
	sent, arrived := r.rates[e], r.served[e]
	if sent == 0 || arrived < 1.05*sent {
		return
	}
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F701", At: r.at, Subject: "retries from " + e.from +
		" to " + e.to,
		Text: fmt.Sprintf("the sidecar of %s sends %.3g requests/s to %s, and %.3g/s arrive: %.2f tries for each", e.from,
			sent,
			e.to, arrived, arrived/sent), Fix: "if no file says why, look at the sidecar's retries for this host"})
}
