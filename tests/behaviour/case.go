package behaviour

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/tests/behaviour/backend"
	"github.com/abate-go/abate/topology"
)

// Case is one request to a product, and what the importer says of it.
type Case struct {
	Name    string
	Key     string // the first part of the request's path, by which the product chooses the configuration
	Method  string
	Command string // what the backend is told to do
	Outcome topology.Outcome
	Layer   *topology.Layer // what the importer read
	Warm    bool            // a request that succeeds goes before, so that a connection is open
}

// Path is the path of the case's request.
func (c *Case) Path() string { return "/" + c.Key + "/" + c.Command }

func (c *Case) methods() topology.Methods {
	if c.Method == http.MethodPost || c.Method == http.MethodPatch {
		return topology.Unsafe
	}
	return topology.Safe
}

// Product is a program that runs, or a library.
type Product struct {
	Backend *backend.Backend
	// Send sends one request. That the request fails is no error; that the product does not end it is.
	Send func(ctx context.Context, method, path string) (Answer, error)
}

// Answer is how a product ended a request.
type Answer struct {
	Tries  int // that the product itself says it made; 0 when it does not say
	Status int // of HTTP; 0 for others
}

// statuses are the outcomes that are one status each.
var statuses = map[topology.Outcome]int{topology.S500: 500, topology.S502: 502, topology.S503: 503, topology.S504: 504,
	topology.S429: 429}

// Proxy returns the product that listens for HTTP at an address. tries reads from an answer how many tries it says it
// made.
func Proxy(b *backend.Backend, address string, tries func(*http.Response) int) *Product {
	return &Product{b, func(ctx context.Context, method, path string) (Answer, error) {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // net/http repeats on a kept connection
		var body io.Reader
		if method == http.MethodPost {
			body = strings.NewReader("order=7")
		}
		req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, body)
		if err != nil {
			return Answer{}, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return Answer{}, err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return Answer{tries(resp), resp.StatusCode}, nil
	}}
}

// atOnce is how many requests are under way at a time.
const atOnce = 48

// patience is how much longer than it must a request may take before something is wrong. It is no measure of speed.
const patience = 30 * time.Second

// Run sends the requests of all cases and compares the tries and the time of each with what its layer says.
func Run(t *testing.T, p *Product, cases []Case) {
	t.Helper()
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	problems := make([]string, len(cases))
	for i := range cases {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			problems[i] = p.check(&cases[i])
		})
	}
	all.Wait()
	bad := 0
	for i, problem := range problems {
		if problem != "" {
			bad++
			t.Errorf("%s: %s", cases[i].Name, problem)
		}
	}
	t.Logf("%d cases, %d differ", len(cases), bad)
}

// check returns what is wrong with a case, or nothing.
func (p *Product) check(c *Case) string {
	want := c.Layer.Tries(c.Outcome, c.methods())
	longest, ends := c.Layer.Longest(c.Outcome, c.methods())
	if !want.Known || !ends {
		return fmt.Sprintf("the importer does not know: %+v, ends %v", want, ends)
	}
	if c.Warm {
		if _, _, err := p.send(c.Method, "/"+c.Key+"/200", longest+patience); err != nil {
			return err.Error()
		}
	}
	answer, took, err := p.send(c.Method, c.Path(), longest+patience)
	if err != nil {
		return err.Error()
	}
	// The last try is counted when it arrives, which may be after the product gave it up.
	arrives := want.N
	if c.Outcome == topology.Refused {
		arrives = 0
	}
	p.Backend.Await(c.Path(), patience, func(all, _ int) bool { return all >= arrives })
	arrived := len(p.Backend.Attempts(c.Path()))
	var problems []string
	if c.Outcome != topology.Refused && arrived != want.N {
		problems = append(problems, fmt.Sprintf("%d tries arrived, the importer says %d", arrived, want.N))
	}
	said := answer.Tries
	if said > 0 && said != want.N {
		problems = append(problems, fmt.Sprintf("the product made %d tries, the importer says %d", said, want.N))
	}
	if c.Outcome == topology.Refused && said == 0 {
		problems = append(problems, "the product does not say how many tries it made")
	}
	gives := c.Layer.Gives(c.Outcome)
	if status := statuses[gives]; answer.Status > 0 && status > 0 && answer.Status != status {
		problems = append(problems, fmt.Sprintf("the answer is %d, the importer says %v", answer.Status, gives))
	}
	// Timers of programs are as coarse as a few milliseconds.
	if least := shortest(c, want.N) * 9 / 10; took < least {
		problems = append(problems, fmt.Sprintf("took %v, the importer says at least %v", took, least))
	}
	if took > longest+patience {
		problems = append(problems, fmt.Sprintf("took %v, the importer says at most %v", took, longest))
	}
	return strings.Join(problems, "; ")
}

// shortest returns how long n tries take at least.
func shortest(c *Case, n int) time.Duration {
	total := time.Duration(0)
	by := c.Layer.Tries(c.Outcome, c.methods()).By
	for i := 1; i <= n; i++ {
		if c.Outcome == topology.Hang {
			total += c.Layer.PerTry.Or(0)
		}
		if i < n {
			least, _ := c.Layer.Backoff.Wait(i)
			if by != nil && !by.Wait.IsZero() {
				least = by.Wait.Or(0)
			}
			total += least
		}
	}
	if overall := c.Layer.Overall.Or(0); overall > 0 && !c.Layer.StartsOnly {
		total = min(total, overall)
	}
	return total
}

// send sends one request within a limit, and returns how it ended and how long it took.
func (p *Product) send(method, path string, limit time.Duration) (answer Answer, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	start := time.Now()
	answer, err = p.Send(ctx, method, path)
	return answer, time.Since(start), err
}

// Leave sends the request of a case, which hangs, leaves when its first try has arrived, and compares what the product
// does then with what the layer says: it stops, so that the try ends at once and is the only one, or it makes all
// tries. The limit of a try has to be long where it stops, and short where it does not.
func Leave(t *testing.T, p *Product, c *Case) {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = p.Send(ctx, c.Method, c.Path())
	}()
	arrived := p.Backend.Await(c.Path(), patience, func(all, _ int) bool { return all > 0 })
	start := time.Now()
	leave()
	<-gone
	if !arrived {
		t.Fatal("no try arrived")
	}
	if full := c.Layer.Tries(c.Outcome, c.methods()).N; !c.Layer.Cancels.Or(false) {
		if !p.Backend.Await(c.Path(), patience, func(all, _ int) bool { return all >= full }) {
			t.Errorf("%d tries of a client that left, and the importer says that all %d are made: %s",
				len(p.Backend.Attempts(c.Path())), full, c.Layer.Cancels)
		}
		return
	}
	over := p.Backend.Await(c.Path(), patience, func(_, open int) bool { return open == 0 })
	if took := time.Since(start); !over || took > c.Layer.PerTry.Or(0)*3/4 {
		t.Errorf("the try of a client that left went on for %v, and the importer says that it stops: %s", took,
			c.Layer.Cancels)
	}
	for range 5 { // a further try would follow the last one at once, before these
		if _, _, err := p.send(http.MethodGet, "/"+c.Key+"/200", patience); err != nil {
			t.Error(err)
		}
	}
	if n := len(p.Backend.Attempts(c.Path())); n != 1 {
		t.Errorf("%d tries of a client that left, and the importer says that it stops: %s", n, c.Layer.Cancels)
	}
}
