package launch

import (
	"fmt"
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
	mu    sync.Mutex
	calls map[string]*counts
	past  map[string]map[netip.AddrPort]bool // by service
}

// counts are those of a service.
type counts struct{ calls, failed, retries int }

func newTally() *tally {
	return &tally{calls: map[string]*counts{}, past: map[string]map[netip.AddrPort]bool{}}
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

// sees notes connections of the program that go past the proxy, and returns a line for each service that is new there.
func (t *tally) sees(found []netip.AddrPort, of map[netip.AddrPort]string, bases map[string]string) []string {
	var lines []string
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range found {
		service := of[at]
		if t.past[service] == nil {
			t.past[service] = map[netip.AddrPort]bool{}
			line := fmt.Sprintf("%s: the program is connected to %s by itself: nothing guards these calls", service, at)
			if name := variable(service); bases[name] != "" { // a reload may have brought the service
				line += "; have it call $" + name + " instead"
			}
			lines = append(lines, line)
		}
		t.past[service][at] = true
	}
	return lines
}

// silence is what is said when no call has come for a while.
func silence(after string, watching, strangers bool) string {
	seen := "it may go past it: this system does not tell"
	if watching {
		seen = "no connection of its own to a service was seen either"
	}
	what := "no call has come through the proxy in %s: the program has made none yet, or its client does not look at " +
		"HTTP_PROXY, and %s"
	if strangers {
		what = "no call to a service of the policy file has come through the proxy in %s, only to hosts that it does not " +
			"list: the program has made none yet, or asks for a service by another name, and %s"
	}
	return fmt.Sprintf(what+". docs/run.md says what each runtime needs; $ABATE_URL_... works for all", after, seen)
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
	switch {
	case len(used) == 0 && len(t.past) == 0 && len(out.PassThrough) > 0:
		lines = append(lines, "no call to a service of the policy file went through the proxy: the program made none, "+
			"called them by other names, or went past it unseen")
	case len(used) == 0 && len(t.past) == 0:
		lines = append(lines, "no call went through the proxy: the program made none, or went past it unseen")
	case len(used) > 0:
		lines = append(lines, used...)
	}
	for _, s := range silent {
		if t.past[s] != nil {
			lines = append(lines, s+": none: the program did not use the proxy"+t.besides(s))
		}
	}
	silent = slices.DeleteFunc(silent, func(s string) bool { return t.past[s] != nil })
	if len(used)+len(t.past) > 0 && len(silent) > 0 {
		lines = append(lines, few(silent)+": none: the program did not call, or did not use the proxy")
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
func (t *tally) besides(service string) string {
	if len(t.past[service]) == 0 {
		return ""
	}
	var at []string
	for a := range t.past[service] {
		at = append(at, a.String())
	}
	slices.Sort(at)
	return "; it was connected to " + few(at) + " by itself, where nothing guards its calls"
}

// few lists the first five of some words.
func few(words []string) string {
	if len(words) <= 5 {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:5], ", "), len(words)-5)
}

// outsideLines say what went to hosts that the policy file does not list.
func outsideLines(out proxy.Outside) (lines []string) {
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
