package basics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/abate-go/abate/cmd/internal/address"
)

// waitTarget is something to wait for.
type waitTarget struct {
	shown   string   // without password and query
	secrets []string // what may not be printed, whoever prints it
	probe   func(context.Context) error
}

// plain make the question for an address of a scheme that needs no client of its own.
var plain = map[string]address.Prober{
	"http": httpProbe, "https": httpProbe,
	"mysql": connectProbe("3306"), "tcp": connectProbe(""),
	"unix": socketProbe,
}

// probers are those of all schemes that this program knows.
func (c Clients) probers() map[string]address.Prober {
	all := maps.Clone(plain)
	maps.Copy(all, c.Probers)
	return all
}

// elsewhere is the error for a target whose client another program has.
type elsewhere struct{ shown, scheme string }

func (e elsewhere) Error() string {
	return fmt.Sprintf("%s: this program has no client for %s", e.shown, e.scheme)
}

// parseTarget reads a target. Neither it nor its error shows a password.
func (c Clients) parseTarget(raw string) (waitTarget, error) {
	a, err := address.Parse(raw)
	if err != nil {
		return waitTarget{}, err
	}
	t := waitTarget{shown: a.Shown(), secrets: a.Secrets()}
	makeProbe, ok := c.probers()[a.Scheme]
	switch {
	case !ok && slices.Contains(address.All, a.Scheme):
		return waitTarget{}, elsewhere{t.shown, a.Scheme}
	case !ok:
		return waitTarget{}, fmt.Errorf("%s: the scheme %q is not known: there are %s", t.shown, a.Scheme, address.Schemes)
	}
	if t.probe, err = makeProbe(a); err != nil {
		return waitTarget{}, fmt.Errorf("%s: %s", t.shown, t.hide(err.Error()))
	}
	return t, nil
}

// hide takes the secrets out of a text, and makes one line of it. A driver that has tried the same address with and
// without TLS says the same twice: once is enough.
func (t *waitTarget) hide(text string) string {
	for _, s := range t.secrets {
		text = strings.ReplaceAll(text, s, "xxxxx")
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Map(address.Printable, strings.Join(lines, " "))
}
