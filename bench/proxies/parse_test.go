package main

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

const wrkOutput = `Running 5s test @ http://127.0.0.1:8080/
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.01ms    1.22ms  30.15ms   90.11%
    Req/Sec    37.22k     5.05k   48.00k    50.00%
  Latency Distribution
     50%  788.00us
     75%    1.10ms
     90%    2.30ms
     99%    4.04ms
  372180 requests in 5.10s, 403.21MB read
`

func TestWrkOutputIsRead(t *testing.T) {
	good := loadResult{
		requests: 372180, took: 5100 * time.Millisecond, p50: 788 * time.Microsecond, p99: 4040 * time.Microsecond,
	}
	failing := good
	failing.failed = 1 + 2 + 3 + 4 + 50
	slow := good
	slow.p50, slow.p99, slow.took = 1200*time.Millisecond, 61200*time.Millisecond, time.Minute
	for name, c := range map[string]struct {
		out  string
		want loadResult
	}{
		"good": {wrkOutput + "Requests/sec:  72976.47\nTransfer/sec:     79.06MB\n", good},
		"failing": {wrkOutput + "  Socket errors: connect 1, read 2, write 3, timeout 4\n" +
			"  Non-2xx or 3xx responses: 50\nRequests/sec:  72976.47\n", failing},
		"slow": {strings.NewReplacer("788.00us", "1.20s", "4.04ms", "1.02m", "5.10s", "1.00m").Replace(wrkOutput), slow},
	} {
		if got, err := parseWrk(c.out); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

func TestOtherOutputThanThatOfWrkIsAnError(t *testing.T) {
	for name, out := range map[string]string{
		"nothing":         "",
		"no quantiles":    strings.ReplaceAll(wrkOutput, "%", ""),
		"no total":        strings.ReplaceAll(wrkOutput, "requests in", "replies in"),
		"unit unknown":    strings.ReplaceAll(wrkOutput, "4.04ms", "4.04parsecs"),
		"too many to say": strings.ReplaceAll(wrkOutput, "372180", "99999999999999999999"),
		"a refusal":       "unable to connect to 127.0.0.1:8080 Connection refused\n",
	} {
		if r, err := parseWrk(out); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
}

func TestLoadThatFailedIsNoResult(t *testing.T) {
	for _, c := range []struct {
		requests, failed int
		ok               bool
	}{{10000, 0, true}, {10000, 1, true}, {9999, 1, false}, {0, 0, false}, {0, 64, false}} {
		if err := (loadResult{requests: c.requests, failed: c.failed}).check(); (err == nil) != c.ok {
			t.Errorf("%d of %d failed: %v", c.failed, c.requests, err)
		}
	}
}

func TestProcessTimesAreRead(t *testing.T) {
	const rest = " S 7 100 100 0 -1 4194304 500 600 0 0 11 22 333 4444 20 0 4 0 12345 1000 200"
	for _, name := range []string{"(nginx)", "(a b) c)", "())", "((sd-pam))"} {
		got, err := parseStat("42 " + name + rest + "\n")
		if want := (stat{parent: 7, own: 33, reaped: 4777}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, line := range []string{
		"", "42 nginx" + rest, "42 (nginx) S 7", strings.Replace("42 (x)"+rest, " 22 ", " xx ", 1),
	} {
		if got, err := parseStat(line); err == nil {
			t.Errorf("%q is read as %+v", line, got)
		}
	}
}

func TestMachineTimesAreReadWithoutInterruptsAndIdleTime(t *testing.T) {
	const text = "cpu  1 20 300 4000 50000 600000 7000000 80000000 9 9\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
	busy, stolen, err := parseMachine(text)
	if busy != 80000321 || stolen != 80000000 || err != nil {
		t.Errorf("busy %d, stolen %d, %v", busy, stolen, err)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7 8 9\n", "cpu  1 2 3 4\n", "cpu  1 2 3 4 5 6 7 x 9\n"} {
		if _, _, err := parseMachine(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestMemoryIsRead(t *testing.T) {
	for text, want := range map[string]int64{
		"Name:\tnginx\nVmPeak:\t  99 kB\nVmRSS:\t    1234 kB\nRssAnon:\t 1 kB\n": 1234,
		"Name:\tzombie\nState:\tZ (zombie)\n":                                    0,
	} {
		if got, err := parseRSS([]byte(text)); got != want || err != nil {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"Name:\tx\nVmRSS:\t12 MB\n", "Name:\tx\nVmRSS:\tmuch kB\n"} {
		if got, err := parseRSS([]byte(bad)); err == nil {
			t.Errorf("%q is read as %d", bad, got)
		}
	}
}

func TestTimesOfATreeCountChildrenThatEnded(t *testing.T) {
	before := table{1: {0, 1000, 0}, 10: {1, 5, 1}, 11: {10, 20, 0}, 12: {11, 300, 0}, 20: {1, 7000, 0}}
	after := table{1: {0, 1000, 0}, 10: {1, 6, 1}, 11: {10, 20, 310}, 20: {1, 7000, 0}} // 12 ended, with 10 more
	spent := after.ticks(after.tree(10)) - before.ticks(before.tree(10))
	if len(before.tree(10)) != 3 || spent != 11 {
		t.Errorf("tree %v spent %d ticks, want 3 processes and 11", before.tree(10), spent)
	}
}

func TestOthersAreTheLargerOfTwoSums(t *testing.T) {
	for name, c := range map[string]struct {
		spent meter
		want  float64
	}{
		"nobody":                 {meter{ours: 700, visible: 700, machine: 700}, 0},
		"a neighbour":            {meter{ours: 700, visible: 800, machine: 800}, 0.5},
		"interrupts hide it":     {meter{ours: 700, visible: 800, machine: 600}, 0.5},
		"another container":      {meter{ours: 700, visible: 700, machine: 900}, 1},
		"the hypervisor":         {meter{ours: 700, visible: 700, machine: 800, stolen: 100}, 0.5},
		"ours is counted better": {meter{ours: 700, visible: 690, machine: 650}, 0},
	} {
		if got := c.spent.others(2); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMeterIsADifference(t *testing.T) {
	a, b := meter{1, 2, 3, 4, 5, 6}, meter{11, 22, 33, 44, 55, 66}
	if got := b.since(a); got != (meter{10, 20, 30, 40, 50, 60}) {
		t.Errorf("%+v", got)
	}
}

func TestAnswersAreMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		head string
		want int
		ok   bool
	}{
		"incomplete":   {"HTTP/1.1 200 OK\r\nContent-Length: 10", 0, true},
		"complete":     {"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length:1024\r\n\r\nxx", 51 + bodySize, true},
		"refused":      {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 1024\r\n\r\n", 0, false},
		"another body": {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", 0, false},
		"chunked":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, false},
		"not HTTP":     {"SSH-2.0\r\n\r\n", 0, false},
	} {
		if got, err := answerLength([]byte(c.head)); got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]struct {
		size byteSize
		back string
	}{
		"10GiB": {10 * gib, "10GiB"}, "64MiB": {64 * mib, "64MiB"}, "1.5KiB": {1536, "1536B"}, "10GB": {1e10, "9765625KiB"},
		"2 MB": {2e6, "2000000B"}, "1000": {1000, "1000B"}, "7B": {7, "7B"}, "2KB": {2000, "2000B"}, "2KiB": {2048, "2KiB"},
	} {
		var b byteSize
		if err := b.Set(text); err != nil || b != want.size || b.String() != want.back {
			t.Errorf("%s: %d (%s), %v, want %d (%s)", text, int64(b), &b, err, int64(want.size), want.back)
		}
	}
	for _, bad := range []string{"", "ten", "-1MiB", "0", "NaN", "9000000TiB", "1PB", "99999999GiB", "Inf"} {
		var b byteSize
		if err := b.Set(bad); err == nil {
			t.Errorf("%q is %d bytes", bad, int64(b))
		}
	}
}

func TestPortsOfOneSource(t *testing.T) {
	if n, err := parsePortRange("32768\t60999\n"); n != 21174 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := parsePortRange("5000 5000\n"); n != 1 || err != nil {
		t.Errorf("one port: %d, %v", n, err)
	}
	for _, bad := range []string{"", "1", "9 5", "a b", "-5 5"} {
		if n, err := parsePortRange(bad); err == nil {
			t.Errorf("%q is %d ports", bad, n)
		}
	}
}

func TestArguments(t *testing.T) {
	opt, err := parseOptions([]string{"-passes", "4", "-duration", "7s", "-idle", "5", "-stream", "1MiB", "-chats", "9",
		"-grpc", "-targets", "direct,abate"}, io.Discard)
	if err != nil || opt.chats != 9 || opt.chatTime != time.Minute || !opt.grpc || opt.passes != 4 ||
		opt.duration != 7*time.Second || opt.idle != 5 || opt.stream != mib || len(opt.targets) != 2 {
		t.Errorf("%+v, %v", opt, err)
	}
	if opt, err := parseOptions([]string{"-quick"}, io.Discard); err != nil || opt.passes != 1 ||
		opt.chatTime != 2*time.Second || opt.duration != time.Second {
		t.Errorf("-quick: %+v, %v", opt, err)
	}
	for arg, want := range map[string]string{
		"-h": flag.ErrHelp.Error(), "-passes=0": "at least 1", "-duration=500ms": "whole seconds",
		"-duration=1500ms": "whole seconds",
		"-chats=-1":        "at least 1", "-chattime=10ms": "at least 1s",
		"-idle=-1": "at least 1", "-targets=caddy": "no target \"caddy\", only direct, nginx",
		"abate":     "everything is a flag",
		"-stream=x": "the arguments are wrong", "-nonsense": "the arguments are wrong",
	} {
		if _, err := parseOptions([]string{arg}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

func TestModesAskedFor(t *testing.T) {
	for want, opt := range map[string]options{
		"load load load load grpc grpc": {}, "grpc grpc": {grpc: true},
		"idle": {idle: 5}, "stream": {stream: mib}, "chats": {chats: 5},
		"idle stream chats": {idle: 5, stream: mib, chats: 5}, "chats grpc grpc": {chats: 5, grpc: true},
	} {
		var got []string
		for _, m := range modes(opt) {
			switch {
			case m.chats > 0:
				got = append(got, "chats")
			case m.grpc:
				got = append(got, "grpc")
			case m.columns[0].metric == rate:
				got = append(got, "load")
			case m.columns[0].metric == perConnection:
				got = append(got, "idle")
			case m.columns[0].metric == lengthRate:
				got = append(got, "stream")
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %q, want %q", opt, got, want)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add(wrkOutput)
	f.Add("42 (a) b) S 7 100 100 0 -1 4194304 500 600 0 0 11 22 333 4444 20 0\n")
	f.Add("cpu  1 20 300 4000 50000 600000 7000000 80000000 9 9\n")
	f.Add("Name:\tx\nVmRSS:\t1234 kB\n")
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n")
	f.Add("32768 60999\n")
	f.Add("1.5GiB")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parseWrk(text)
		_, _ = parseStat(text)
		_, _, _ = parseMachine(text)
		_, _ = parseRSS([]byte(text))
		if n, err := answerLength([]byte(text)); err == nil && n != 0 && n < bodySize {
			t.Errorf("an answer of %d bytes", n)
		}
		if n, err := parsePortRange(text); err == nil && n < 1 {
			t.Errorf("%d ports", n)
		}
		var b byteSize
		if err := b.Set(text); err == nil && (b < 1 || b > 1<<50) {
			t.Errorf("%d bytes", int64(b))
		}
	})
}
