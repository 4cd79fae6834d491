package audit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// Loss is what becomes of one service's settings in another format.
type Loss struct {
	Service string         `json:"service"`
	Rows    []exporter.Row `json:"rows"`
	// Others are layers that try the same calls and are in no policy file: they multiply what is written.
	Others []string `json:"others,omitempty"`
	// Unread says that what was written was not found again, so that nothing is known of the loss.
	Unread bool `json:"unread,omitempty"`
	// Costs say what the losses do in an outage; see AddCosts.
	Costs []Cost `json:"costs,omitempty"`
	// Unplayed says that there were too many services with losses to play those of this one.
	Unplayed bool `json:"unplayed,omitempty"`
	// Repeats are the failures after which POST and PATCH are sent again although the policy as written does not, when
	// they may have been carried out.
	Repeats []string `json:"repeatsUnsafe,omitempty"`
}

// Lossy reports whether anything but exact settings is among the losses.
func Lossy(all []Loss) bool {
	return slices.ContainsFunc(all, func(l Loss) bool {
		return l.Unread || slices.ContainsFunc(l.Rows, func(r exporter.Row) bool { return r.Kind != exporter.Exact })
	})
}

// Export writes the services of a policy file in another format, reads what it wrote, and says what was lost. urls are
// where the services are.
func Export(f exporter.Format, policy importer.File, urls map[string][]string) ([]byte, []Loss, error) {
	routes, err := routesOf(policy, urls)
	if err != nil {
		return nil, nil, err
	}
	text := f.Write(routes)
	all := losses(elsewhere(routes), "export"+extension(f.Name), f.Write)
	more, rest := noPlace(policy)
	for i := range all {
		all[i].Service = routes[i].Service
		all[i].Rows = append(all[i].Rows, more[routes[i].Service]...)
	}
	if rest != nil {
		all = append(all, *rest)
	}
	return text, all, nil
}

// routesOf returns a route for each service of a policy file.
func routesOf(policy importer.File, urls map[string][]string) ([]exporter.Route, error) {
	form, _ := importer.Read([]importer.File{policy}, source.Assume{})
	if len(form.Policies) == 0 {
		for _, r := range form.Remarks {
			return nil, fmt.Errorf("%s: %s", r.At, r.Text)
		}
		return nil, fmt.Errorf("%s lists no service; without services there is nothing to write", policy.Name)
	}
	var routes []exporter.Route
	for _, p := range form.Policies {
		name := p.Callees[0]
		routes = append(routes, exporter.Route{Service: name, URLs: urls[name], Layer: p.Layer})
	}
	return routes, nil
}

// elsewhere returns routes with as many endpoints each, but with names and hosts that tell the services apart: what a
// program on 127.0.0.1 is, no importer can say, and which of "a.shop" and "b.shop" a gRPC service shop is neither.
func elsewhere(routes []exporter.Route) []exporter.Route {
	out := slices.Clone(routes)
	for i := range out {
		out[i].Service = fmt.Sprintf("service-%d", i+1)
		urls := make([]string, max(1, len(out[i].URLs)))
		for j := range urls {
			urls[j] = fmt.Sprintf("http://service-%d-%d:80", i+1, j+1)
		}
		out[i].URLs = urls
	}
	return out
}

// Again reads what Export wrote in a format, writes it again, and compares the two: what a format can say at all comes
// back the same.
func Again(f exporter.Format, text []byte) []exporter.Row {
	file := importer.File{Name: "export" + extension(f.Name), Data: text}
	form, _ := importer.Read([]importer.File{file}, source.Assume{Implementation: "istio"})
	joined, _ := form.Join()
	var rows []exporter.Row
	for i := range joined.Calls {
		c := &joined.Calls[i]
		r := exporter.Route{Service: c.To, URLs: []string{"http://" + c.To}}
		l := layerOf(&joined, topology.NewNames(joined.Services), &r)
		if l == nil {
			continue
		}
		r.Layer, r.URLs = *l, make([]string, max(1, l.Endpoints.Or(1)))
		again := losses(elsewhere([]exporter.Route{r}), file.Name, f.Write)
		rows = append(rows, again[0].Rows...)
	}
	return rows
}

func extension(format string) string {
	switch format {
	case "grpc":
		return ".json"
	case "nginx":
		return ".conf"
	case "haproxy":
		return ".cfg"
	case "spring":
		return "/application.yaml"
	}
	return ".yaml"
}

// losses writes routes, reads what was written and compares.
func losses(routes []exporter.Route, file string, write func([]exporter.Route) []byte) []Loss {
	var all []Loss
	for i, after := range cameBack(routes, file, write) {
		l := Loss{Service: routes[i].Service, Unread: after == nil}
		if before := &routes[i].Layer; after != nil {
			l.Rows, l.Repeats = exporter.Compare(before, after), repeats(before, after)
		}
		all = append(all, l)
	}
	return all
}

// cameBack writes routes and returns, for each, the layer that is read from what was written; nil where none is.
func cameBack(routes []exporter.Route, file string, write func([]exporter.Route) []byte) []*topology.Layer {
	written := importer.File{Name: file, Data: write(routes)}
	// An HTTPRoute says nothing of retries by itself: it is read as Istio serves it.
	form, _ := importer.Read([]importer.File{written}, source.Assume{Implementation: "istio"})
	joined, _ := form.Join()
	names := topology.NewNames(joined.Services)
	all := make([]*topology.Layer, len(routes))
	for i := range routes {
		if all[i] = layerOf(&joined, names, &routes[i]); all[i] == nil && unsaid(&routes[i], write) {
			all[i] = &topology.Layer{} // what is not there repeats nothing
		}
	}
	return all
}

// repeats names the failures after which a layer sends unsafe requests again, and the one that it stands for does not.
func repeats(before, after *topology.Layer) []string {
	var all []string
	for _, o := range topology.AllOutcomes() {
		if o.MayHaveRun() && before.Tries(o, topology.Unsafe).N == 1 && after.Tries(o, topology.Unsafe).N > 1 {
			all = append(all, o.String())
		}
	}
	return all
}

// Warnings says of which services the requests that must not be carried out twice are repeated by what was written, and
// not by the policy: the one loss that does harm when nothing is overloaded.
func Warnings(format string, all []Loss) []string {
	var out []string
	for _, l := range all {
		if len(l.Repeats) > 0 {
			out = append(out, fmt.Sprintf("%s repeats POST and PATCH of %s after %s, and the policy does not: they may be "+
				"carried out twice", format, l.Service, someOf(l.Repeats)))
		}
	}
	return out
}

func someOf(words []string) string {
	const most = 4
	if len(words) > most {
		return strings.Join(words[:most], ", ") + ", …"
	}
	return strings.Join(words, ", ")
}

// unsaid reports whether nothing of a route's layer was written: a route without one is written the same.
func unsaid(r *exporter.Route, write func([]exporter.Route) []byte) bool {
	bare := exporter.Route{Service: r.Service, URLs: r.URLs}
	return bytes.Equal(write([]exporter.Route{*r}), write([]exporter.Route{bare}))
}

// layerOf returns the layer that stands for a route.
func layerOf(f *topology.Form, names *topology.Names, r *exporter.Route) *topology.Layer {
	for _, name := range r.Names() {
		service, rule := names.Find(name, "")
		if rule == topology.NotFound || rule == topology.Ambiguous {
			continue
		}
		for i := range f.Calls {
			if f.Calls[i].To != service {
				continue
			}
			for j := range f.Calls[i].Layers {
				if l := &f.Calls[i].Layers[j]; callers(l) {
					return l
				}
			}
		}
	}
	return nil
}

// Import returns the policy file of a caller for what files say of its calls, and what is lost. caller empty means all
// callers together. Of several layers on a call the outermost that repeats is taken; the others are named, because they
// go on repeating.
func Import(files []importer.File, caller string, assume source.Assume) ([]byte, []Loss, error) {
	form, _ := importer.Read(files, assume)
	joined, _ := form.Join()
	var routes []exporter.Route
	others := map[string][]string{}
	for i := range joined.Calls {
		c := &joined.Calls[i]
		at := slices.IndexFunc(c.Layers, func(l topology.Layer) bool {
			n, _ := exporter.Tries(&l)
			return n > 1 && callers(&l)
		})
		if at < 0 {
			at = slices.IndexFunc(c.Layers, func(l topology.Layer) bool { return callers(&l) })
		}
		if at < 0 || caller != "" && !called(&joined, c.From, caller) ||
			slices.ContainsFunc(routes, func(r exporter.Route) bool { return r.Service == c.To }) {
			continue
		}
		routes = append(routes, exporter.Route{Service: c.To, Layer: c.Layers[at]})
		for j := range c.Layers {
			l := &c.Layers[j]
			if n, _ := exporter.Tries(l); n > 1 && j != at && !lint.Local(l) {
				tries := fmt.Sprint(n, " tries")
				if n == topology.Unbounded {
					tries = "tries without a limit"
				}
				others[c.To] = append(others[c.To], fmt.Sprintf("%s %s: %s (%s)", l.Kind, layerName(l), tries, triesSource(l)))
			}
		}
	}
	if len(routes) == 0 {
		return nil, nil, fmt.Errorf("these files set no retries, limits or breakers for a call%s", of(caller))
	}
	text := exporter.Policy(routes)
	all := losses(routes, "policy.yaml", exporter.Policy)
	for i := range all {
		all[i].Others = others[all[i].Service]
	}
	return text, all, nil
}

// callers reports whether a layer is one that the caller decides about, and not the callee's sidecar or a transport.
func callers(l *topology.Layer) bool {
	return l.Kind != topology.SidecarIn && l.Kind != topology.Connection
}

func of(caller string) string {
	if caller == "" {
		return ""
	}
	return " of " + caller
}

// called reports whether a service goes by a name.
func called(f *topology.Form, service, name string) bool {
	found, _ := topology.NewNames(f.Services).Find(name, "")
	return service != "" && found == service
}

// LossText writes losses for a terminal: what is not exact, and how much is.
func LossText(all []Loss) string {
	var b strings.Builder
	played := false
	for _, l := range all {
		played = played || len(l.Costs) > 0
		exact := 0
		for _, r := range l.Rows {
			if r.Kind == exporter.Exact {
				exact++
			}
		}
		if fmt.Fprintf(&b, "%s:", l.Service); exact > 0 || len(l.Rows) == 0 {
			fmt.Fprintf(&b, " %s exact", count(exact, "setting"))
		}
		b.WriteByte('\n')
		if l.Unread {
			b.WriteString("  what was written was not found again, so the loss is not known\n")
		}
		for _, r := range l.Rows {
			if r.Kind != exporter.Exact {
				fmt.Fprintf(&b, "  %s\n", r)
			}
		}
		for _, c := range l.Costs {
			b.WriteString(c.lines())
		}
		if l.Unplayed {
			fmt.Fprintf(&b, "  what this costs was not played: only the first %d services with losses are\n", MostCosts)
		}
		for _, o := range l.Others {
			fmt.Fprintf(&b, "  beside the policy, this still repeats the same calls, until it is switched off where it stands: "+
				"%s\n", o)
		}
	}
	if played {
		b.WriteString(costNote() + "\n")
	}
	return b.String()
}
