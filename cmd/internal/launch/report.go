package launch

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy"
)

// tally is what has come through the proxy, and what was seen going past it.
type tally struct {
	mu       sync.Mutex
	calls    map[string]*counts
	past     map[string]map[netip.AddrPort]bool    // by service: the program's own connections
	brief    map[string]map[netip.AddrPort]passage // by service: those that were gone before anybody saw whose they were
	told     map[string]bool                       // it was said that a service has such
	complete bool                                  // every connection was seen, or the notice of its end
}

// counts are those of a service.
type counts struct{ calls, failed, retries int }

func newTally() *tally {
	return &tally{calls: map[string]*counts{}, past: map[string]map[netip.AddrPort]bool{},
		brief: map[string]map[netip.AddrPort]passage{}, told: map[string]bool{}}
}

// observer counts the calls of a service.
func (t *tally) observer(service string) abate.Observer {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.calls[service]
	if n == nil {
		n = new(counts)
		t.calls[service] = n
	}
	return core.ObserverFunc(func(e core.Event) {
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case e.Kind == core.CallBegan:
			n.calls++
		case e.Kind == core.CallEnded && (e.Class == core.Failure || e.Class == core.Overload || e.Reason != nil):
			n.failed++
		case e.Kind == core.RetryScheduled:
			n.retries++
		}
	})
}

// any reports whether a call has come for one of these services.
func (t *tally) any(services []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	called := func(s string) bool { return t.calls[s] != nil && t.calls[s].calls > 0 }
	return slices.ContainsFunc(t.withFormer(services), called)
}

// sees notes connections that go past the proxy, the program's and those of which nobody knows, and returns a line for
// each service that is new there.
func (t *tally) sees(found []netip.AddrPort, gone map[netip.AddrPort]passage, of map[netip.AddrPort]string,
	bases map[string]string) (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	say := func(service, what string) {
		if name := variable(service); bases[name] != "" { // a reload may have brought the service
			what += "; have it call $" + name + " instead"
		}
		lines = append(lines, service+": "+what)
		t.told[service] = true
	}
	for _, at := range found {
		service := of[at]
		if t.past[service] == nil {
			t.past[service] = map[netip.AddrPort]bool{}
			say(service, fmt.Sprintf("the program is connected to %s by itself: nothing guards these calls", at))
		}
		t.past[service][at] = true
	}
	for at, n := range gone {
		service := of[at]
		if t.brief[service] == nil {
			t.brief[service] = map[netip.AddrPort]passage{}
		}
		if t.brief[service][at] = n; n.carried > 0 && !t.told[service] {
			say(service, fmt.Sprintf("a connection to %s came and went that was not the proxy's: the program's, unless another "+
				"process calls there; nothing guards such calls", at))
		}
	}
	return lines
}

// bypassed reports whether connections to a service went past the proxy, the program's for all that is known. mu is
// held.
func (t *tally) bypassed(service string) bool {
	return t.past[service] != nil || t.brief[service] != nil
}

// silence is what is said when no call has come for a while.
func (t *tally) silence(after string, watching, strangers bool) string {
	const help = ". docs/run.md says what each runtime needs; $ABATE_URL_... works for all"
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := "it may go past it: this system does not tell"
	if watching {
		seen = "no connection of its own to a service was seen either"
	}
	if past := slices.Sorted(maps.Keys(t.told)); len(past) > 0 {
		return fmt.Sprintf("no call to a service of the policy file has come through the proxy in %s, and connections to %s "+
			"go past it"+help, after, few(past))
	}
	what := "no call has come through the proxy in %s: the program has made none yet, or its client does not look at " +
		"HTTP_PROXY, and %s"
	if strangers {
		what = "no call to a service of the policy file has come through the proxy in %s, only to hosts that it does not " +
			"list: the program has made none yet, or asks for a service by another name, and %s"
	}
	return fmt.Sprintf(what+help, after, seen)
}

// report is what has happened, when the program has ended.
func (t *tally) report(services []string, out proxy.Outside) (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	services = t.withFormer(services)
	var used, silent []string
	for _, s := range services {
		n := t.calls[s]
		if n == nil || n.calls == 0 {
			silent = append(silent, s)
			continue
		}
		line := s + ": " + cli.Count(n.calls, "call")
		if n.failed > 0 || n.retries > 0 {
			line += fmt.Sprintf(" (%d failed, %s)", n.failed, retriesOf(n.retries))
		}
		used = append(used, line+t.besides(s))
	}
	past := len(t.past)+len(t.brief) > 0
	switch {
	case len(used) == 0 && !past && strangers(out):
		lines = append(lines, "no call to a service of the policy file went through the proxy: the program made none, "+
			"called them by other names, or went past it unseen")
	case len(used) == 0 && !past:
		lines = append(lines, "no call went through the proxy: the program made none, or went past it unseen")
	case len(used) > 0:
		lines = append(lines, used...)
	}
	for _, s := range silent {
		switch {
		case t.past[s] != nil:
			lines = append(lines, s+": none: the program did not use the proxy"+t.besides(s))
		case t.brief[s] != nil:
			lines = append(lines, s+": none through the proxy"+t.besides(s))
		}
	}
	silent = slices.DeleteFunc(silent, t.bypassed)
	if (len(used) > 0 || past) && len(silent) > 0 {
		lines = append(lines, few(silent)+": none: the program did not call, or did not use the proxy")
	}
	if !t.complete {
		lines = append(lines, "this system did not tell of every connection: short ones may have gone past the proxy unseen")
	}
	return append(lines, outsideLines(out)...)
}

// withFormer adds what was called and is no service of the policy file any more. mu is held.
func (t *tally) withFormer(services []string) []string {
	all := slices.Clone(services)
	for name, n := range t.calls {
		if n.calls > 0 && !strings.HasPrefix(name, "(") && !slices.Contains(services, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all[len(services):])
	return all
}

func retriesOf(n int) string {
	if n == 1 {
		return "1 retry"
	}
	return fmt.Sprintf("%d retries", n)
}

// besides says which connections of a service went past the proxy. mu is held.
func (t *tally) besides(service string) (what string) {
	var at, carried, empty []string
	for a := range t.past[service] {
		at = append(at, a.String())
	}
	sum := passage{}
	for a, n := range t.brief[service] {
		if sum.carried, sum.empty = sum.carried+n.carried, sum.empty+n.empty; n.carried > 0 {
			carried = append(carried, a.String())
		}
		if n.empty > 0 {
			empty = append(empty, a.String())
		}
	}
	for _, words := range [][]string{at, carried, empty} {
		slices.Sort(words)
	}
	if len(at) > 0 {
		what += "; it was connected to " + few(at) + " by itself, where nothing guards its calls"
	}
	if sum.carried > 0 {
		what += fmt.Sprintf("; %s to %s came and went without the proxy, the program's unless another process calls there",
			cli.Count(sum.carried, "short connection"), few(carried))
	}
	if sum.empty > 0 {
		what += fmt.Sprintf("; %s to %s without the proxy failed or had no content, the program's unless another process "+
			"calls there", cli.Count(sum.empty, "connection"), few(empty))
	}
	return what
}

// few lists the first five of some words.
func few(words []string) string {
	if len(words) <= 5 {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:5], ", "), len(words)-5)
}

// strangers reports whether calls came that were for no service of the policy file.
func strangers(out proxy.Outside) bool { return len(out.PassThrough)+len(out.NoService) > 0 }

// outsideLines say what went to hosts that the policy file does not list, and what to nobody.
func outsideLines(out proxy.Outside) (lines []string) {
	for _, service := range slices.Sorted(maps.Keys(out.NoService)) {
		n := cli.Count(int(out.NoService[service]), "call")
		if service == "" {
			lines = append(lines, n+" got a 404: no service of the policy file has a route or "+
				"upstream for the host and path")
		} else {
			lines = append(lines, service+": "+n+" to its base URL got a 404: the policy file did not "+
				"have the service any more")
		}
	}
	var hosts []string
	calls := int64(0)
	for _, p := range out.PassThrough {
		hosts, calls = append(hosts, fmt.Sprintf("%s (%d)", p.Host, p.Calls)), calls+p.Calls
	}
	if calls > 0 {
		lines = append(lines, fmt.Sprintf("not in the policy file, so not guarded: %s to %s", cli.Count(int(calls), "call"),
			few(hosts)))
	}
	opened := int64(0)
	for _, w := range out.Tunnels {
		opened += w.Opened
	}
	if opened > 0 {
		lines = append(lines, fmt.Sprintf("%s (https), in which nothing can be guarded", cli.Count(int(opened), "tunnel")))
	}
	refused := int64(0)
	for _, n := range out.Refused {
		refused += n
	}
	if refused > 0 {
		lines = append(lines, fmt.Sprintf("%s refused: see outside.connect in docs/proxy.md",
			cli.Count(int(refused), "tunnel")))
	}
	return lines
}
