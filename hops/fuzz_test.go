package hops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

// FuzzAllowance: what can be read can be written, and means the same; several values are never more than the least of
// them.
func FuzzAllowance(f *testing.F) {
	for _, c := range load(f).ParseAllowance {
		f.Add(strings.Join(c.Values, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		values := strings.Split(text, "\n")
		least, ok := hops.LeastAllowance(values)
		if least.Left < 0 || least.Left > core.MaxAllowance || !ok && least != (core.Allowance{}) {
			t.Fatalf("%q: %+v, %v", values, least, ok)
		}
		for _, v := range values {
			if a, good := hops.ParseAllowance(v); good && (!ok || a.Left < least.Left) {
				t.Errorf("%q: %+v, but %+v of all", v, a, least)
			}
		}
		written := string(hops.AppendAllowance(nil, least))
		again, good := hops.ParseAllowance(written)
		if least.Owner = printable(least.Owner); !good || again != least {
			t.Errorf("%+v is written %q, and read %+v, %v", least, written, again, good)
		}
	})
}

// printable is what is kept of an owner.
func printable(owner string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, owner[:min(len(owner), 128)])
}

// FuzzOwner: any name can be written, in a line of its own, and nothing but printable text comes of it.
func FuzzOwner(f *testing.F) {
	for _, owner := range []string{
		"", "payment-service", `a"b\c`, "a\r\nSet-Cookie: x", "ä", "\x00\x7f", strings.Repeat("\\", 300),
	} {
		f.Add(owner, 2)
	}
	f.Fuzz(func(t *testing.T, owner string, left int) {
		text := string(hops.AppendAllowance(nil, core.Allowance{Left: left, Owner: owner}))
		a, ok := hops.ParseAllowance(text)
		if !ok || a.Left != min(max(left, 0), core.MaxAllowance) || len(text) > 300 ||
			strings.ContainsAny(text, "\r\n\x00") {
			t.Fatalf("%q: %+v, %v", text, a, ok)
		}
		if owner = owner[:min(len(owner), 128)]; len(a.Owner) != len(owner) {
			t.Errorf("%q became %q", owner, a.Owner)
		}
	})
}

// FuzzMade: what can be read can be written, and means the same; several values are never less than each of them.
func FuzzMade(f *testing.F) {
	for _, c := range load(f).ParseMade {
		f.Add(strings.Join(c.Values, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		values := strings.Split(text, "\n")
		most := hops.MostMade(values)
		for _, v := range values {
			if b, ok := hops.ParseMade(v); ok && (b.Made > most.Made || b.Final && !most.Final || !most.Said) {
				t.Errorf("%q: %+v, but %+v of all", v, b, most)
			}
		}
		if b, ok := hops.ParseMade(string(hops.AppendMade(nil, most))); most.Said && (!ok || b != most) ||
			most.Made > core.MaxAllowance || most.Made < 0 {
			t.Errorf("%+v is read back as %+v, %v", most, b, ok)
		}
	})
}

// FuzzGRPCTimeout: nobody is told that there is more time than there is, nor in more than 8 digits.
func FuzzGRPCTimeout(f *testing.F) {
	for _, c := range load(f).WriteGRPCTimeout {
		f.Add(int64(c.Is), c.Text)
	}
	for _, c := range load(f).ParseGRPCTimeout {
		f.Add(int64(1), c.Value)
	}
	f.Fuzz(func(t *testing.T, ns int64, text string) {
		written := string(hops.AppendGRPCTimeout(nil, time.Duration(ns)))
		got, ok := hops.ParseGRPCTimeout(written)
		if !ok || len(written) > 9 || got > max(time.Duration(ns), 1) || got <= 0 {
			t.Errorf("%d ns is written %q, and read %v, %v", ns, written, got, ok)
		}
		if day := 24 * time.Hour; time.Duration(ns) <= day && got < time.Duration(ns)-time.Duration(ns)/1000 {
			t.Errorf("%d ns is written %q: too much is lost", ns, written)
		}
		if d, ok := hops.ParseGRPCTimeout(text); ok && (d < 0 || d > 24*time.Hour) {
			t.Errorf("%q is %v", text, d)
		}
	})
}

// FuzzHeadersOfOthers: whatever comes, it is read as something in range, or as nothing.
func FuzzHeadersOfOthers(f *testing.F) {
	for _, c := range load(f).Attempts {
		f.Add(c.Name, c.Value)
	}
	for _, c := range load(f).ParsePushback {
		f.Add("X-Envoy-Expected-Rq-Timeout-Ms", strings.Join(c.Values, "\n"))
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if n, ok := hops.AttemptOf(name, value); ok != (n >= 1) || n > 1_000_001 {
			t.Errorf("%s %q is attempt %d, %v", name, value, n, ok)
		}
		if d, ok := hops.TimeLimitOf(name, value); d < 0 || d > 24*time.Hour || !ok && d != 0 {
			t.Errorf("%s %q is %v, %v", name, value, d, ok)
		}
		p := hops.ParsePushback(strings.Split(value, "\n"))
		if p.Never && p.Wait != 0 || p.Wait < 0 {
			t.Errorf("pushback %q is %+v", value, p)
		}
		if again := hops.ParsePushback([]string{string(hops.AppendPushback(nil, p))}); again != p {
			t.Errorf("pushback %q is %+v, and %+v when it is written and read", value, p, again)
		}
		_ = hops.ParseStatus(value).String()
	})
}
