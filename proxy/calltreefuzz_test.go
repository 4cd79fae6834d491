package proxy_test

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/hops"
)

// fieldValue is a value that arrives as it was sent; false if there is no such one.
func fieldValue(s string) (string, bool) {
	s = strings.Trim(s, " \t")
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return "", false
		}
	}
	return s, len(s) < 4096
}

// The names of a trace, by which two requests are known to belong together. The proxy reads them in another way.
var (
	formOfTraceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)
	formOfB3          = regexp.MustCompile(`^([0-9a-fA-F]{16}|[0-9a-fA-F]{32})-[0-9a-fA-F]{16}(-.*)?$`)
	formOfTraceID     = regexp.MustCompile(`^([0-9a-fA-F]{16}|[0-9a-fA-F]{32})$`)
	formOfRequestID   = regexp.MustCompile(`^[!-~]{8,128}$`)
)

func nonzero(digits string) bool { return strings.Trim(digits, "0") != "" }

var traceNames = []struct {
	field string
	is    func(value string) bool
}{
	{"traceparent", func(v string) bool {
		m := formOfTraceparent.FindStringSubmatch(v)
		return m != nil && m[1] != "ff" && (m[1] != "00" || m[4] == "") && nonzero(m[2]) && nonzero(m[3])
	}},
	{"b3", func(v string) bool {
		m := formOfB3.FindStringSubmatch(v)
		return m != nil && nonzero(m[1])
	}},
	{"X-B3-TraceId", func(v string) bool { return formOfTraceID.MatchString(v) && nonzero(v) }},
	{"X-Request-Id", formOfRequestID.MatchString},
}

// FuzzTraces sends a request with one extra attempt to a program that passes one field on: its call is repeated once if
// that names a trace, and twice, as the policy allows, if it names nothing.
func FuzzTraces(f *testing.F) {
	for _, value := range []string{
		traceparent, strings.ToUpper(traceparent), traceparent + "-00", "cc" + traceparent[2:] + "-what-the-future-brings",
		"ff" + traceparent[2:],
		"01" + traceparent[2:] + ".", "00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		traceparent[:54], "00", "", "80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1-05e3ac9a4f6e3b90",
		"64fe8b2a57d3eff7-e457b5a2e4d86bd1",
		"64fe8b2a57d3eff7-e457b5a2e4d86bd1x", "0", "1", "d", "-", "64fe8b2a57d3eff7", "0000000000000000",
		"80F198EE56343BA864FE8B2A57D3EFF7",
		"80f198ee56343ba864fe8b2a57d3effg", "8c6f0a66-8f2b-4a3b-9a35-0d2f2f1f2a10", "1234567", "12345678", "1234 5678",
		strings.Repeat("x", 128), strings.Repeat("x", 129), "\x80\xff345678",
	} {
		for kind := range traceNames {
			f.Add(uint8(kind), value)
		}
	}
	var passes string
	p := newPair(f, func(p *pair, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(p.call(r, carry(r, passes)).StatusCode)
	}, upstream(f, func(c net.Conn, _ string) { io.WriteString(c, status(503)) }).url, countOnly)
	c := dial(f, p.in)
	c.SetDeadline(time.Time{})
	f.Fuzz(func(t *testing.T, kind uint8, value string) {
		name := traceNames[int(kind)%len(traceNames)]
		value, ok := fieldValue(value)
		if !ok {
			return
		}
		passes, c.t = name.field, t
		before := p.sent.Load()
		a := c.send("GET / HTTP/1.1\r\nHost: s\r\n" + allowance + ": 1\r\n" + name.field + ": " + value + "\r\n\r\n").answer()
		joined := name.is(value)
		attempts, want := p.sent.Load()-before, int32(3)
		if joined {
			want = 2
		}
		if attempts != want || a.header.Get(made) == "1" != joined {
			t.Errorf("%s %q: %d attempts, and the caller was told %v", name.field, value, attempts, a.header)
		}
	})
}

// FuzzAllowances sends any allowance to a program that passes on what it is told, or any other in its place, and has
// the service say anything about the attempts behind it.
func FuzzAllowances(f *testing.F) {
	for _, value := range []string{
		"0", "1", "2", "1000", "-1", "99999999999999999999", "", "x", `2;owner="a"`, `2;owner="a\"b\\";final`,
		`1;owner=";call="`, "1;final", "0;final=?0", "1 ;final", "1, 2",
		`2;call="0123456789abcdef"`, `2;call="0123456789abcde"`, `2;call="`, `2;owner="` + "\x80" + `"`,
		`2;owner="` + strings.Repeat("a", 300) + `"`, "2; owner=x",
	} {
		f.Add(value, "", "0")
		f.Add("2", value, "")
		f.Add("2", "", value)
	}
	var instead, says atomic.Pointer[string]
	leaf := upstream(f, func(c net.Conn, _ string) {
		fields := []string{}
		if s := *says.Load(); s != "" {
			fields = append(fields, made+": "+s)
		}
		io.WriteString(c, status(503, fields...))
	})
	var passed string
	p := newPair(f, func(p *pair, w http.ResponseWriter, r *http.Request) {
		passed = r.Header.Get(allowance)
		fields := carry(r, allowance)
		if s := *instead.Load(); s != "" {
			fields[allowance] = s
		}
		w.WriteHeader(p.call(r, fields).StatusCode)
	}, leaf.url, countOnly)
	c := dial(f, p.in)
	c.SetDeadline(time.Time{})
	value := regexp.MustCompile(`^[0-9]{1,4}(;owner="([ -!#-\[\]-~]|\\["\\])*")?$`)
	f.Fuzz(func(t *testing.T, sent, program, service string) {
		var all [3]string
		for i, s := range []string{sent, program, service} {
			var ok bool
			if all[i], ok = fieldValue(s); !ok {
				return
			}
		}
		c.t = t
		instead.Store(&all[1])
		says.Store(&all[2])
		before, seen := p.sent.Load(), len(leaf.seen())
		a := c.send("GET / HTTP/1.1\r\nHost: s\r\n" + allowance + ": " + all[0] + "\r\n\r\n").answer()
		arrived, believed := hops.ParseAllowance(all[0])
		own, _, found := strings.Cut(passed, `;call="`)
		switch again, ok := hops.ParseAllowance(passed); {
		case believed != (passed != ""), believed && (!ok || again.Left != arrived.Left || !value.MatchString(own) && !found):
			t.Errorf("%q became %q", all[0], passed)
		}
		if _, ok := hops.ParseMade(a.header.Get(made)); ok != believed || len(a.header[http.CanonicalHeaderKey(made)]) > 1 {
			t.Errorf("%q was answered with %v", all[0], a.header)
		}
		most := 3
		if all[1] == "" && believed {
			most = min(most, 1+arrived.Left)
		} else if other, ok := hops.ParseAllowance(all[1]); ok {
			most = min(most, 1+other.Left)
		}
		if b, _ := hops.ParseMade(all[2]); b.Final {
			most = 1
		}
		if got := int(p.sent.Load() - before); got < 1 || got > most {
			t.Errorf("%q, %q and %q made %d attempts, at most %d are allowed", all[0], all[1], all[2], got, most)
		}
		for _, req := range leaf.seen()[seen:] {
			if got := field(req, allowance); !value.MatchString(got) ||
				strings.Count(strings.ToLower(req), strings.ToLower(allowance)) != 1 {
				t.Errorf("the service got %q", req)
			}
		}
	})
}
