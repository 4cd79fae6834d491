package rehearse

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// onlooker reads what a drill prints, and looks at /metrics of its page whenever it has run a second more.
type onlooker struct {
	t       *testing.T
	said    strings.Builder
	metrics string
}

var pageOf = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/`)

func (o *onlooker) Write(p []byte) (int, error) {
	o.said.Write(p)
	if found := pageOf.FindStringSubmatch(o.said.String()); found != nil && strings.Contains(string(p), " s  answered ") {
		answer, err := http.Get("http://" + found[1] + "/metrics")
		if err != nil {
			o.t.Errorf("the page beside the drill: %v", err)
			return len(p), nil
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			o.t.Error(err)
		}
		o.metrics = string(body)
	}
	return len(p), nil
}

func TestADrillIsSeenByPrometheusWhileItIsPlayed(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	for _, via := range [][]string{nil, {"--via", "proxy"}} {
		o := &onlooker{t: t}
		args := append([]string{"--admin", "127.0.0.1:0", "--act", "guarded", "--rate", "40", "--clients", "4", "--capacity",
			"4", "--queue", "40",
			"--before", "1s", "--outage", "500ms", "--after", "2s"}, via...)
		if code := everything.DrillCommand(context.Background(), args, o, o); code == 2 {
			t.Fatalf("%v: exit code %d:\n%s", via, code, o.said.String())
		}
		for _, want := range []string{`abate_calls_total{outcome="success",service="payment-service"}`,
			`abate_attempts_total{class="success",service="payment-service"}`} {
			if !strings.Contains(o.metrics, want) {
				t.Errorf("%v: /metrics has no %s:\n%.2000s", via, want, o.metrics)
			}
		}
	}
}

func TestADrillWhoseAdminAddressIsTakenSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out, complaint strings.Builder
	if code := everything.DrillCommand(context.Background(), []string{"--admin", l.Addr().String()}, &out,
		&complaint); code != 1 || !strings.Contains(complaint.String(), "another program listens there already") {
		t.Errorf("exit code %d, %q", code, complaint.String())
	}
	complaint.Reset()
	if code := everything.DrillCommand(context.Background(), []string{"--admin", "here"}, &out, &complaint); code != 2 ||
		!strings.Contains(complaint.String(), `--admin "here" is not an address`) {
		t.Errorf("exit code %d, %q", code, complaint.String())
	}
}
